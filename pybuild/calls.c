#include "calls.h"

halstream_block halstream_found;
