/* What the two files of the template share. */
#ifndef BACKEND_H
#define BACKEND_H

#include <pthread.h>

#include "tensor_backend/stubs.h"

/* A queue that runs everything within the call: all that is left of it is the order of threads. */
struct tb_stream_s {
  pthread_mutex_t mutex;
};

/* Runs the rest of a function only if a check passed. */
#define REQUIRE(check)                    \
  do {                                    \
    const tb_status status_ = (check);    \
    if (status_ != TB_OK) return status_; \
  } while (0)

/* Fills the error and returns the status. */
tb_status refuse(tb_error* error, tb_status status, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
tb_status decline(tb_error* error, uint32_t reason, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

/* TB_OK, or TB_E_STATE in a process that was forked from the one that loaded this backend. */
tb_status check_process(tb_error* error);
/* The same, and TB_E_INVALID for no stream. */
tb_status check_stream(tb_stream stream, tb_error* error);
/* TB_E_INVALID unless [address, address + bytes) lies within one live allocation. */
tb_status check_range(tb_address address, uint64_t bytes, tb_error* error);

void* pointer_of(tb_address address);

void fill_operators(tb_operator_api* table);

#endif
