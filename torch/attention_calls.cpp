// What torch.backends.cuda asks about fused attention.
#include "attention.h"
#include "python_functions.h"

#include <torch/csrc/autograd/python_variable.h>

namespace halstream_torch {

namespace {

// An attribute of torch's SDPAParams.
class Attribute {
 public:
  Attribute(PyObject* object, const char* name) : value_(PyObject_GetAttrString(object, name)) {
    if (value_ == nullptr) throw python_error();
  }
  ~Attribute() { Py_DECREF(value_); }
  Attribute(const Attribute&) = delete;
  Attribute& operator=(const Attribute&) = delete;

  at::Tensor tensor() const { return THPVariable_Check(value_) ? THPVariable_Unpack(value_) : at::Tensor(); }
  bool flag() const { return PyObject_IsTrue(value_) == 1; }

 private:
  PyObject* value_;
};

// params, debug
template <at::SDPBackend backend>
PyObject* can_use(PyObject*, PyObject* args) {
  PyObject* params = nullptr;
  int debug = 0;
  if (!PyArg_ParseTuple(args, "O|p", &params, &debug)) return nullptr;
  return guarded([&] {
    return PyBool_FromLong(attention_takes(
        backend, Attribute(params, "query").tensor(), Attribute(params, "key").tensor(),
        Attribute(params, "value").tensor(), Attribute(params, "attn_mask").tensor(),
        Attribute(params, "is_causal").flag(), Attribute(params, "enable_gqa").flag()));
  });
}

}  // namespace

PyMethodDef attention_functions[] = {
    {"_can_use_flash_attention", can_use<at::SDPBackend::flash_attention>, METH_VARARGS, nullptr},
    {"_can_use_mem_efficient_attention", can_use<at::SDPBackend::efficient_attention>, METH_VARARGS, nullptr},
    {"_can_use_cudnn_attention", can_use<at::SDPBackend::cudnn_attention>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace halstream_torch
