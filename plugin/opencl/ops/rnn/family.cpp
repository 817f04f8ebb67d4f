// What the family offers.
#include "ops/family.h"

#include "rnn.h"

namespace ocltensor::opencl::rnn {

Family family() { return {{kLstmOperators, kGruOperators}, {lstm_algorithms, gru_algorithms}}; }

}  // namespace ocltensor::opencl::rnn
