// The whole C++ API of the small dispatcher, in one include.
#pragma once

#include "ocltensor/arguments.h"   // IWYU pragma: export
#include "ocltensor/autograd.h"    // IWYU pragma: export
#include "ocltensor/backends.h"    // IWYU pragma: export
#include "ocltensor/call.h"        // IWYU pragma: export
#include "ocltensor/creation.h"    // IWYU pragma: export
#include "ocltensor/device.h"      // IWYU pragma: export
#include "ocltensor/dims.h"        // IWYU pragma: export
#include "ocltensor/dtype.h"       // IWYU pragma: export
#include "ocltensor/error.h"       // IWYU pragma: export
#include "ocltensor/functional.h"  // IWYU pragma: export
#include "ocltensor/generator.h"   // IWYU pragma: export
#include "ocltensor/graph.h"       // IWYU pragma: export
#include "ocltensor/indexing.h"    // IWYU pragma: export
#include "ocltensor/kernel.h"      // IWYU pragma: export
#include "ocltensor/memory.h"      // IWYU pragma: export
#include "ocltensor/nn.h"          // IWYU pragma: export
#include "ocltensor/ops.h"         // IWYU pragma: export
#include "ocltensor/options.h"     // IWYU pragma: export
#include "ocltensor/print.h"       // IWYU pragma: export
#include "ocltensor/profiler.h"    // IWYU pragma: export
#include "ocltensor/scalar.h"      // IWYU pragma: export
#include "ocltensor/serialize.h"   // IWYU pragma: export
#include "ocltensor/settings.h"    // IWYU pragma: export
#include "ocltensor/stream.h"      // IWYU pragma: export
#include "ocltensor/tensor.h"      // IWYU pragma: export
#include "ocltensor/tuning.h"      // IWYU pragma: export
#include "ocltensor/version.h"     // IWYU pragma: export
#include "ocltensor/warm_up.h"     // IWYU pragma: export
