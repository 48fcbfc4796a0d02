#include "attention.h"

#include "unsupported.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <cmath>
#include <limits>
#include <unordered_map>

#include "ATen/TensorOperators.h"
#include "ATen/ops/arange.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/empty.h"
#include "ATen/ops/empty_like.h"
#include "ATen/ops/empty_strided.h"
#include "ATen/ops/full.h"
#include "ATen/ops/logsumexp.h"
#include "ATen/ops/matmul.h"
#include "ATen/ops/zeros.h"

namespace halstream_torch {

namespace {

using at::Tensor;

constexpr double infinity = std::numeric_limits<double>::infinity();

// The arguments of a call, one after another.
class Reader {
 public:
  explicit Reader(const Stack& stack) : stack_(stack) {}

  Tensor tensor() {
    const auto& value = stack_[next_++];
    return value.isTensor() ? value.toTensor() : Tensor();
  }
  double number() { return stack_[next_++].toDouble(); }
  bool flag() { return stack_[next_++].toBool(); }
  int64_t integer() { return stack_[next_++].toInt(); }
  std::optional<double> optional_number() {
    const auto& value = stack_[next_++];
    return value.isNone() ? std::nullopt : std::make_optional(value.toDouble());
  }
  std::optional<int64_t> optional_integer() {
    const auto& value = stack_[next_++];
    return value.isNone() ? std::nullopt : std::make_optional(value.toInt());
  }
  void skip(size_t count = 1) { next_ += count; }
  // An argument that has no counterpart here.
  void without(const char* what) {
    const auto& value = stack_[next_++];
    bool given = value.isBool() ? value.toBool() : value.isTensor() ? value.toTensor().defined() : !value.isNone();
    TORCH_CHECK_NOT_IMPLEMENTED(
        !given, "attention with ", what, " is not supported on halstream's CUDA device", kExplanation);
  }

 private:
  const Stack& stack_;
  size_t next_ = 0;
};

// Which keys a query sees. Where the last query stands beside the last key, the places of queries are moved.
struct Seen {
  bool causal = false;
  bool last_beside_last = true;
  std::optional<int64_t> left, right;  // how far a query sees
  Tensor slopes;                       // of a bias that grows with the distance, for each head
};

struct Options {
  Seen seen;
  Tensor bias;  // or a mask of bools
  double dropout = 0;
  std::optional<double> scale;
};

Tensor to_wide(const Tensor& tensor) { return tensor.scalar_type() == at::kDouble ? tensor : tensor.to(at::kFloat); }

// Attention of queries, keys and values of sizes (batch, heads, places, channels).
class Attention {
 public:
  Attention(const Tensor& query, const Tensor& key, const Tensor& value, const Options& options, uint64_t seed)
      : options_(options), seed_(seed), groups_(query.size(1) / std::max<int64_t>(1, key.size(1))),
        scale_(options.scale.value_or(1 / std::sqrt(static_cast<double>(query.size(3))))), query_(to_wide(query)),
        key_(for_each_query(to_wide(key))), value_(for_each_query(to_wide(value))) {
    scores_ = at::matmul(query_, key_.transpose(-2, -1)).mul_(scale_);
    add_bias();
  }

  // Results and the logarithms of the sums of exponentials.
  std::pair<Tensor, Tensor> forward() {
    auto sums = at::logsumexp(scores_, -1);
    sums.masked_fill_(sums.eq(-infinity), infinity);  // a query that sees no key
    return {at::matmul(dropped(weights(sums)), value_), sums};
  }

  struct Gradients {
    Tensor query, key, value, bias;
  };
  Gradients backward(const Tensor& gradient, const Tensor& result, const Tensor& sums) {
    auto of_result = to_wide(gradient);
    auto all = weights(to_wide(sums));
    auto of_weights = dropped(at::matmul(of_result, value_.transpose(-2, -1)));
    auto of_scores = all.mul(of_weights - (of_result * to_wide(result)).sum(-1, true));
    return {at::matmul(of_scores, key_).mul_(scale_), of_one(at::matmul(of_scores.transpose(-2, -1), query_).mul_(scale_)),
            of_one(at::matmul(dropped(all).transpose(-2, -1), of_result)), of_scores};
  }

 private:
  Tensor for_each_query(const Tensor& tensor) const { return groups_ > 1 ? tensor.repeat_interleave(groups_, 1) : tensor; }
  Tensor of_one(const Tensor& gradient) const {
    return groups_ > 1 ? gradient.unflatten(1, {gradient.size(1) / groups_, groups_}).sum(2) : gradient;
  }

  void add_bias() {
    if (options_.bias.defined()) {
      if (options_.bias.scalar_type() == at::kBool) {
        scores_ = scores_.masked_fill(options_.bias.logical_not(), -infinity);
      } else {
        scores_ = scores_ + to_wide(options_.bias);
      }
    }
    const auto& seen = options_.seen;
    auto queries = scores_.size(-2), keys = scores_.size(-1);
    auto integers = query_.options().dtype(at::kLong);
    auto moved = seen.last_beside_last ? keys - queries : 0;
    // How far behind the query a key stands.
    auto behind = at::arange(queries, integers).add(moved).unsqueeze(1) - at::arange(keys, integers);
    if (seen.causal) scores_ = scores_.masked_fill(behind.lt(0), -infinity);
    if (seen.left && *seen.left >= 0) scores_ = scores_.masked_fill(behind.gt(*seen.left), -infinity);
    if (seen.right && *seen.right >= 0) scores_ = scores_.masked_fill(behind.lt(-*seen.right), -infinity);
    if (seen.slopes.defined()) scores_ = scores_ - to_wide(seen.slopes).unsqueeze(-1).unsqueeze(-1) * behind.abs();
  }

  Tensor weights(const Tensor& sums) const { return scores_.sub(sums.unsqueeze(-1)).exp(); }

  // The same elements are dropped from the weights and from their gradient.
  Tensor dropped(const Tensor& tensor) const {
    if (options_.dropout == 0 || tensor.is_meta()) return tensor;
    auto kept = at::empty_like(tensor, at::MemoryFormat::Contiguous);
    kept.bernoulli_(1 - options_.dropout, at::detail::createCPUGenerator(seed_));
    return tensor * kept / (1 - options_.dropout);
  }

  const Options& options_;
  uint64_t seed_;
  int64_t groups_;
  double scale_;
  Tensor query_, key_, value_, scores_;
};

void check_attention(const Tensor& query, const Tensor& key, const Tensor& value, int64_t dimensions) {
  TORCH_CHECK(
      query.dim() == dimensions && key.dim() == dimensions && value.dim() == dimensions,
      "attention takes queries, keys and values of ", dimensions, " dimensions, and got ", query.sizes(), ", ",
      key.sizes(), " and ", value.sizes());
  TORCH_CHECK(
      query.scalar_type() == key.scalar_type() && query.scalar_type() == value.scalar_type(),
      "query, key and value must have the same dtype, and have ", query.scalar_type(), ", ", key.scalar_type(), " and ",
      value.scalar_type());
  auto heads = dimensions == 4 ? 1 : 0;
  TORCH_CHECK(
      dimensions != 4 || query.size(heads) == key.size(heads) || key.size(heads) > 0,
      "attention takes keys of at least one head");
}

// As `like`, with these values and the order of its dimensions in memory.
Tensor in_layout_of(const Tensor& like, const Tensor& values, c10::ScalarType dtype) {
  auto result = values.sizes() == like.sizes()
      ? at::empty_like(like, like.options().dtype(dtype))
      : at::empty(values.sizes(), values.options().dtype(dtype));
  return result.copy_(values);
}

// As (batch, places, heads, channels) in memory, which is how the efficient kernels write.
Tensor by_places(const Tensor& values, c10::ScalarType dtype) {
  return values.transpose(1, 2).to(dtype).contiguous().transpose(1, 2);
}

// The sums padded to a multiple of 32 queries.
Tensor padded(const Tensor& sums, int64_t queries) {
  auto size = (queries + 31) / 32 * 32;
  auto result = at::full({sums.size(0), sums.size(1), size}, infinity, sums.options().dtype(at::kFloat));
  result.narrow(2, 0, sums.size(2)).copy_(sums);
  return result;
}

Tensor seed_tensor(const Tensor& like, c10::ScalarType dtype, at::IntArrayRef sizes, uint64_t seed) {
  auto result = at::zeros(sizes, like.options().dtype(dtype));
  if (!result.is_meta()) std::memcpy(result.mutable_data_ptr(), &seed, sizeof seed);
  return result;
}

uint64_t seed_of(const Tensor& tensor) {
  uint64_t seed = 0;
  if (tensor.defined() && !tensor.is_meta() && tensor.numel() != 0) std::memcpy(&seed, tensor.const_data_ptr(), sizeof seed);
  return seed;
}

// The seed that is kept for the backward pass; without dropout there is none.
uint64_t seed_to_keep(uint64_t seed, double dropout) { return dropout == 0 ? 0 : seed; }

// The parts of tensors of (places of all sequences, heads, channels), as tensors of (1, heads, places, channels).
class Sequences {
 public:
  explicit Sequences(const Tensor& begins) {
    if (begins.is_meta()) return;
    auto on_host = begins.to(at::kLong).contiguous();
    begins_.assign(on_host.const_data_ptr<int64_t>(), on_host.const_data_ptr<int64_t>() + on_host.numel());
  }
  size_t count() const { return begins_.empty() ? 0 : begins_.size() - 1; }
  int64_t length(size_t i) const { return begins_[i + 1] - begins_[i]; }
  Tensor part(const Tensor& all, size_t i) const { return all.narrow(0, begins_[i], length(i)); }
  Tensor sequence(const Tensor& all, size_t i) const { return part(all, i).transpose(0, 1).unsqueeze(0); }
  // Puts (1, heads, places, channels) back.
  void put(const Tensor& all, size_t i, const Tensor& values) const {
    part(all, i).copy_(values.squeeze(0).transpose(0, 1));
  }

 private:
  std::vector<int64_t> begins_;
};

Seen of_sequence(const Seen& seen, size_t i) {
  auto one = seen;
  if (seen.slopes.defined() && seen.slopes.dim() == 2) one.slopes = seen.slopes[static_cast<int64_t>(i)];
  return one;
}

// _scaled_dot_product_flash_attention(query, key, value, dropout, causal, debug, scale)
void flash(Stack& stack, uint64_t seed) {
  Reader reader(stack);
  auto query = reader.tensor(), key = reader.tensor(), value = reader.tensor();
  Options options;
  options.dropout = reader.number();
  options.seen.causal = reader.flag();
  reader.without("return_debug_mask");
  options.scale = reader.optional_number();
  check_attention(query, key, value, 4);
  seed = seed_to_keep(seed, options.dropout);
  auto [result, sums] = Attention(query, key, value, options, seed).forward();
  stack = {in_layout_of(query, result, query.scalar_type()), sums.to(at::kFloat), Tensor(), Tensor(), query.size(2),
           key.size(2), seed_tensor(query, at::kUInt64, {2}, seed), seed_tensor(query, at::kUInt64, {}, 0),
           at::empty({0}, query.options())};
}

// (grad_out, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout, causal, seed, offset, scale)
void flash_backward(Stack& stack, uint64_t) {
  Reader reader(stack);
  auto gradient = reader.tensor(), query = reader.tensor(), key = reader.tensor(), value = reader.tensor();
  auto result = reader.tensor(), sums = reader.tensor();
  reader.skip(4);
  Options options;
  options.dropout = reader.number();
  options.seen.causal = reader.flag();
  auto seed = seed_of(reader.tensor());
  reader.skip();
  options.scale = reader.optional_number();
  check_attention(query, key, value, 4);
  auto gradients = Attention(query, key, value, options, seed).backward(gradient, result, sums);
  stack = {in_layout_of(query, gradients.query, query.scalar_type()), in_layout_of(key, gradients.key, key.scalar_type()),
           in_layout_of(value, gradients.value, value.scalar_type())};
}

// _flash_attention_forward: (batch, places, heads, channels), or (places of all sequences, heads, channels).
struct FlashCall {
  Tensor query, key, value, begins_of_queries, begins_of_keys;
  Options options;

  void check() const { check_attention(query, key, value, begins_of_queries.defined() ? 3 : 4); }

  std::pair<Tensor, Tensor> forward(uint64_t seed) const {
    if (!begins_of_queries.defined()) {
      auto [result, sums] =
          Attention(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), options, seed).forward();
      return {in_layout_of(query, result.transpose(1, 2), query.scalar_type()), sums.to(at::kFloat)};
    }
    auto result = at::empty({query.size(0), query.size(1), value.size(2)}, query.options());
    auto sums = at::empty({query.size(1), query.size(0)}, query.options().dtype(at::kFloat));
    Sequences queries(begins_of_queries), keys(begins_of_keys);
    for (size_t i = 0; i < queries.count(); i++) {
      auto [one, its_sums] = sequence(queries, keys, i, seed).forward();
      queries.put(result, i, one);
      queries.part(sums.t(), i).copy_(its_sums.squeeze(0).t());
    }
    return {result, sums};
  }

  void backward(const Tensor& gradient, const Tensor& result, const Tensor& sums, uint64_t seed, Stack& results) const {
    if (!begins_of_queries.defined()) {
      auto gradients =
          Attention(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), options, seed)
              .backward(gradient.transpose(1, 2), result.transpose(1, 2), sums);
      results = {in_layout_of(query, gradients.query.transpose(1, 2), query.scalar_type()),
                 in_layout_of(key, gradients.key.transpose(1, 2), key.scalar_type()),
                 in_layout_of(value, gradients.value.transpose(1, 2), value.scalar_type())};
      return;
    }
    auto of_query = at::empty_like(query), of_key = at::empty_like(key), of_value = at::empty_like(value);
    Sequences queries(begins_of_queries), keys(begins_of_keys);
    for (size_t i = 0; i < queries.count(); i++) {
      auto gradients =
          sequence(queries, keys, i, seed)
              .backward(
                  queries.sequence(gradient, i), queries.sequence(result, i), queries.part(sums.t(), i).t().unsqueeze(0));
      queries.put(of_query, i, gradients.query);
      keys.put(of_key, i, gradients.key);
      keys.put(of_value, i, gradients.value);
    }
    results = {of_query, of_key, of_value};
  }

 private:
  Attention sequence(const Sequences& queries, const Sequences& keys, size_t i, uint64_t seed) const {
    of_one = options;
    of_one.seen = of_sequence(options.seen, i);
    return Attention(queries.sequence(query, i), keys.sequence(key, i), keys.sequence(value, i), of_one, seed + i);
  }
  mutable Options of_one;  // what the latest of them refers to
};

// From `query` to the end: (query, key, value, cum_seq_q, cum_seq_k, max_q, max_k, dropout, causal, debug, scale,
// window_size_left, window_size_right, seqused_k, alibi_slopes, block_table, num_splits)
FlashCall flash_call(Reader& reader) {
  FlashCall call;
  call.query = reader.tensor();
  call.key = reader.tensor();
  call.value = reader.tensor();
  call.begins_of_queries = reader.tensor();
  call.begins_of_keys = reader.tensor();
  reader.skip(2);
  call.options.dropout = reader.number();
  call.options.seen.causal = reader.flag();
  reader.without("return_debug_mask");
  call.options.scale = reader.optional_number();
  call.options.seen.left = reader.optional_integer();
  call.options.seen.right = reader.optional_integer();
  reader.without("seqused_k");
  call.options.seen.slopes = reader.tensor();
  reader.without("block_table");
  call.check();
  return call;
}

void flash_forward(Stack& stack, uint64_t seed) {
  Reader reader(stack);
  auto call = flash_call(reader);
  seed = seed_to_keep(seed, call.options.dropout);
  auto [result, sums] = call.forward(seed);
  stack = {result, sums, seed_tensor(call.query, at::kUInt64, {2}, seed), seed_tensor(call.query, at::kUInt64, {}, 0),
           at::empty({0}, call.query.options())};
}

// The same with the tensor for the result before its arguments.
void flash_forward_in_place(Stack& stack, uint64_t seed) {
  Reader reader(stack);
  auto out = reader.tensor();
  auto [result, sums] = flash_call(reader).forward(seed);
  out.copy_(result);
  stack = {sums};
}

// (grad_out, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout, causal, rng_state, unused,
// scale, window_size_left, window_size_right)
void flash_backward_by_places(Stack& stack, uint64_t) {
  Reader reader(stack);
  auto gradient = reader.tensor();
  FlashCall call;
  call.query = reader.tensor();
  call.key = reader.tensor();
  call.value = reader.tensor();
  auto result = reader.tensor(), sums = reader.tensor();
  call.begins_of_queries = reader.tensor();
  call.begins_of_keys = reader.tensor();
  reader.skip(2);
  call.options.dropout = reader.number();
  call.options.seen.causal = reader.flag();
  auto seed = seed_of(reader.tensor());
  reader.skip();
  call.options.scale = reader.optional_number();
  call.options.seen.left = reader.optional_integer();
  call.options.seen.right = reader.optional_integer();
  call.check();
  Stack results;
  call.backward(gradient, result, sums, seed, results);
  stack = std::move(results);
}

Tensor summed_to(const Tensor& gradient, const Tensor& bias) { return gradient.sum_to_size(bias.sizes()).to(bias.scalar_type()); }

// _scaled_dot_product_efficient_attention(query, key, value, bias, compute_log_sumexp, dropout, causal, scale)
void efficient(Stack& stack, uint64_t seed) {
  Reader reader(stack);
  auto query = reader.tensor(), key = reader.tensor(), value = reader.tensor();
  Options options;
  options.bias = reader.tensor();
  bool with_sums = reader.flag();
  options.dropout = reader.number();
  options.seen.causal = reader.flag();
  options.seen.last_beside_last = false;
  options.scale = reader.optional_number();
  check_attention(query, key, value, 4);
  seed = seed_to_keep(seed, options.dropout);
  auto [result, sums] = Attention(query, key, value, options, seed).forward();
  if (!with_sums) sums = sums.narrow(2, 0, 0);
  stack = {by_places(result, query.scalar_type()), padded(sums, sums.size(2)), seed_tensor(query, at::kLong, {}, seed),
           seed_tensor(query, at::kLong, {}, 0)};
}

// (grad_out, query, key, value, bias, out, logsumexp, seed, offset, dropout, grad_input_mask, causal, scale)
void efficient_backward(Stack& stack, uint64_t) {
  Reader reader(stack);
  auto gradient = reader.tensor(), query = reader.tensor(), key = reader.tensor(), value = reader.tensor();
  if (!gradient.defined()) {
    stack = {Tensor(), Tensor(), Tensor(), Tensor()};
    return;
  }
  Options options;
  options.bias = reader.tensor();
  auto result = reader.tensor(), sums = reader.tensor();
  auto seed = seed_of(reader.tensor());
  reader.skip();
  options.dropout = reader.number();
  bool of_bias = stack[10].toBoolList()[3];
  reader.skip();
  options.seen.causal = reader.flag();
  options.seen.last_beside_last = false;
  options.scale = reader.optional_number();
  check_attention(query, key, value, 4);
  auto gradients =
      Attention(query, key, value, options, seed).backward(gradient, result, sums.narrow(2, 0, query.size(2)));
  stack = {by_places(gradients.query, query.scalar_type()), by_places(gradients.key, key.scalar_type()),
           by_places(gradients.value, value.scalar_type()),
           of_bias && options.bias.defined() ? summed_to(gradients.bias, options.bias) : Tensor()};
}

// The kinds of masks of _efficient_attention_forward.
Seen seen_by(int64_t kind, std::optional<int64_t> window) {
  TORCH_CHECK(kind >= 0 && kind <= 2, "custom_mask_type must be 0, 1 or 2, and is ", kind);
  Seen seen;
  seen.causal = kind != 0;
  seen.last_beside_last = kind == 2;
  if (window && *window > 0) seen.left = *window - 1;
  return seen;
}

// _efficient_attention_forward(query, key, value, bias, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout,
// custom_mask_type, compute_log_sumexp, scale, seqlen_k, window_size), all of (batch, places, heads, channels); with
// sequences the batch is 1.
void efficient_forward(Stack& stack, uint64_t seed) {
  Reader reader(stack);
  auto query = reader.tensor(), key = reader.tensor(), value = reader.tensor();
  Options options;
  options.bias = reader.tensor();
  auto begins_of_queries = reader.tensor(), begins_of_keys = reader.tensor();
  auto longest_queries = reader.optional_integer(), longest_keys = reader.optional_integer();
  options.dropout = reader.number();
  auto kind = reader.integer();
  bool with_sums = reader.flag();
  options.scale = reader.optional_number();
  reader.without("seqlen_k");
  options.seen = seen_by(kind, reader.optional_integer());
  check_attention(query, key, value, 4);
  seed = seed_to_keep(seed, options.dropout);
  auto queries = longest_queries.value_or(query.size(1)), keys = longest_keys.value_or(key.size(1));
  Tensor result, sums;
  if (begins_of_queries.defined()) {
    TORCH_CHECK(!options.bias.defined(), "attention of sequences of several lengths takes no bias");
    result = at::empty({1, query.size(1), query.size(2), value.size(3)}, query.options());
    sums = at::full(
        {begins_of_queries.size(0) - 1, query.size(2), queries}, infinity, query.options().dtype(at::kFloat));
    Sequences of_queries(begins_of_queries), of_keys(begins_of_keys);
    for (size_t i = 0; i < of_queries.count(); i++) {
      auto [one, its_sums] = Attention(
                                 of_queries.sequence(query[0], i), of_keys.sequence(key[0], i),
                                 of_keys.sequence(value[0], i), options, seed + i)
                                 .forward();
      of_queries.put(result[0], i, one);
      sums[static_cast<int64_t>(i)].narrow(1, 0, of_queries.length(i)).copy_(its_sums[0]);
    }
  } else {
    std::tie(result, sums) =
        Attention(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), options, seed).forward();
    result = result.transpose(1, 2).to(query.scalar_type()).contiguous();
  }
  if (!with_sums) sums = sums.narrow(2, 0, 0);
  stack = {result, padded(sums, sums.size(2)), seed_tensor(query, at::kLong, {}, seed),
           seed_tensor(query, at::kLong, {}, 0), queries, keys};
}

// (grad_out, query, key, value, bias, out, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, logsumexp, dropout,
// seed, offset, custom_mask_type, bias_requires_grad, scale, num_splits_key, window_size, shared_storage_dqdkdv)
void efficient_backward_by_places(Stack& stack, uint64_t) {
  Reader reader(stack);
  auto gradient = reader.tensor(), query = reader.tensor(), key = reader.tensor(), value = reader.tensor();
  Options options;
  options.bias = reader.tensor();
  auto result = reader.tensor();
  auto begins_of_queries = reader.tensor(), begins_of_keys = reader.tensor();
  reader.skip(2);
  auto sums = reader.tensor();
  options.dropout = reader.number();
  auto seed = seed_of(reader.tensor());
  reader.skip();
  auto kind = reader.integer();
  bool of_bias = reader.flag();
  options.scale = reader.optional_number();
  reader.skip();
  options.seen = seen_by(kind, reader.optional_integer());
  check_attention(query, key, value, 4);
  if (begins_of_queries.defined()) {
    auto of_query = at::empty_like(query), of_key = at::empty_like(key), of_value = at::empty_like(value);
    Sequences of_queries(begins_of_queries), of_keys(begins_of_keys);
    for (size_t i = 0; i < of_queries.count(); i++) {
      auto gradients = Attention(
                           of_queries.sequence(query[0], i), of_keys.sequence(key[0], i),
                           of_keys.sequence(value[0], i), options, seed + i)
                           .backward(
                               of_queries.sequence(gradient[0], i), of_queries.sequence(result[0], i),
                               sums[static_cast<int64_t>(i)].narrow(1, 0, of_queries.length(i)).unsqueeze(0));
      of_queries.put(of_query[0], i, gradients.query);
      of_keys.put(of_key[0], i, gradients.key);
      of_keys.put(of_value[0], i, gradients.value);
    }
    stack = {of_query, of_key, of_value, Tensor()};
    return;
  }
  auto gradients =
      Attention(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), options, seed)
          .backward(gradient.transpose(1, 2), result.transpose(1, 2), sums.narrow(2, 0, query.size(1)));
  stack = {in_layout_of(query, gradients.query.transpose(1, 2), query.scalar_type()),
           in_layout_of(key, gradients.key.transpose(1, 2), key.scalar_type()),
           in_layout_of(value, gradients.value.transpose(1, 2), value.scalar_type()),
           of_bias && options.bias.defined() ? summed_to(gradients.bias, options.bias) : Tensor()};
}

// _scaled_dot_product_cudnn_attention(query, key, value, bias, compute_log_sumexp, dropout, causal, debug, scale); with
// `sequences`, _cudnn_attention_forward has four more arguments before compute_log_sumexp, and two more at the end.
template <bool sequences>
void cudnn(Stack& stack, uint64_t seed) {
  Reader reader(stack);
  auto query = reader.tensor(), key = reader.tensor(), value = reader.tensor();
  Options options;
  options.bias = reader.tensor();
  if (sequences) {
    reader.without("cum_seq_q for cuDNN's operator");
    reader.without("cum_seq_k for cuDNN's operator");
    reader.skip(2);
  }
  bool with_sums = reader.flag();
  options.dropout = reader.number();
  options.seen.causal = reader.flag();
  options.seen.last_beside_last = false;
  reader.without("return_debug_mask");
  options.scale = reader.optional_number();
  check_attention(query, key, value, 4);
  seed = seed_to_keep(seed, options.dropout);
  auto [result, sums] = Attention(query, key, value, options, seed).forward();
  stack = {in_layout_of(query, result, query.scalar_type()), with_sums ? sums.to(at::kFloat).unsqueeze(3) : Tensor(),
           Tensor(), Tensor(), query.size(2), key.size(2), seed_tensor(query, at::kLong, {}, seed),
           seed_tensor(query, at::kLong, {}, 0), Tensor()};
}

// (grad_out, query, key, value, out, logsumexp, seed, offset, bias, cum_seq_q, cum_seq_k, max_q, max_k, dropout, causal,
// scale)
void cudnn_backward(Stack& stack, uint64_t) {
  Reader reader(stack);
  auto gradient = reader.tensor(), query = reader.tensor(), key = reader.tensor(), value = reader.tensor();
  auto result = reader.tensor(), sums = reader.tensor();
  auto seed = seed_of(reader.tensor());
  reader.skip();
  Options options;
  options.bias = reader.tensor();
  reader.without("cum_seq_q for cuDNN's operator");
  reader.without("cum_seq_k for cuDNN's operator");
  reader.skip(2);
  options.dropout = reader.number();
  options.seen.causal = reader.flag();
  options.seen.last_beside_last = false;
  options.scale = reader.optional_number();
  check_attention(query, key, value, 4);
  auto gradients = Attention(query, key, value, options, seed).backward(gradient, result, sums.squeeze(3));
  stack = {in_layout_of(query, gradients.query, query.scalar_type()), in_layout_of(key, gradients.key, key.scalar_type()),
           in_layout_of(value, gradients.value, value.scalar_type())};
}

}  // namespace

FusedAttention attention_of(const std::string& name, const std::string& overload) {
  static const auto* all = new std::unordered_map<std::string, FusedAttention>{
      {"aten::_scaled_dot_product_flash_attention", &flash},
      {"aten::_scaled_dot_product_flash_attention_backward", &flash_backward},
      {"aten::_flash_attention_forward", &flash_forward},
      {"aten::_flash_attention_forward_no_dropout_inplace", &flash_forward_in_place},
      {"aten::_flash_attention_backward", &flash_backward_by_places},
      {"aten::_scaled_dot_product_efficient_attention", &efficient},
      {"aten::_scaled_dot_product_efficient_attention_backward", &efficient_backward},
      {"aten::_efficient_attention_forward", &efficient_forward},
      {"aten::_efficient_attention_backward", &efficient_backward_by_places},
      {"aten::_scaled_dot_product_cudnn_attention", &cudnn<false>},
      {"aten::_scaled_dot_product_cudnn_attention_backward", &cudnn_backward},
      {"aten::_cudnn_attention_forward", &cudnn<true>},
      {"aten::_cudnn_attention_backward", &cudnn_backward},
  };
  auto found = overload.empty() ? all->find(name) : all->end();
  return found != all->end() ? found->second : nullptr;
}

bool attention_takes(
    at::SDPBackend backend, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
    const std::optional<at::Tensor>& mask, bool causal, bool grouped) {
  const auto& context = at::globalContext();
  if (query.is_nested() || query.dim() != 4 || key.dim() != 4 || value.dim() != 4) return false;
  auto type = query.scalar_type();
  auto heads = query.size(1), heads_of_keys = key.size(1), channels = query.size(3);
  bool equal_heads = heads == heads_of_keys && heads == value.size(1);
  bool in_groups = grouped && heads_of_keys > 0 && heads_of_keys == value.size(1) && heads % heads_of_keys == 0;
  if (type != key.scalar_type() || type != value.scalar_type() || channels != key.size(3)) return false;
  if (!equal_heads && !in_groups) return false;
  bool half = c10::isReducedFloatingType(type);
  switch (backend) {
    case at::SDPBackend::flash_attention:
      return context.userEnabledFlashSDP() && half && !(mask && mask->defined()) &&
          (!causal || query.size(2) == key.size(2)) && channels <= 256 && channels == value.size(3);
    case at::SDPBackend::efficient_attention:
      return context.userEnabledMemEfficientSDP() && equal_heads && (half || type == at::kFloat);
    case at::SDPBackend::cudnn_attention:
      return context.userEnabledCuDNNSDP() && half && channels <= 256 && channels % 8 == 0;
    default:
      return false;
  }
}

int64_t choose_attention(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const std::optional<at::Tensor>& mask,
    double, bool causal, std::optional<double>, bool grouped) {
  auto& context = at::globalContext();
  if (context.userEnabledMathSDP()) return static_cast<int64_t>(at::SDPBackend::math);
  for (auto backend : context.sDPPriorityOrder()) {
    if (attention_takes(backend, query, key, value, mask, causal, grouped)) return static_cast<int64_t>(backend);
  }
  TORCH_CHECK(false, "No available kernel. Aborting execution.");
}

}  // namespace halstream_torch
