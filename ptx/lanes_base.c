/* The lane loops for any processor. */
#define ISA base
#define TARGET
#include "lanes.h"
