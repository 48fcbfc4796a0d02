// The declarations of cuda/symbols.h, in the form of describe.hpp. FIELDS is written by
// tools/headers.py.
#include "describe.hpp"
#include "symbols.h"

int main()
{
#define X(name, base, version, must, params) \
    std::printf("function %s %s\n", #name, text_of<std::remove_pointer_t<decltype(hs_api_table::name)>>::get().c_str());
    HS_SYMBOLS(X)
#undef X
#define X(vendor, ours, value) NUMBER(#vendor, ours)
    HS_NUMBERS(X)
#undef X
    FIELDS
}
