/* The C ABI between a tensor host and a device backend: the only thing the two share.
 *
 * Self-contained C11; depends on no other header of the project. A backend is one shared library
 * that exports exactly two symbols, `tb_plugin_descriptor` (data) and `tb_plugin_get_api`
 * (function), and imports nothing from its host.
 *
 * Rules that hold for every structure and function below. The conformance kit names the rule that a
 * failed check breaks.
 *  - Rule "sizes": structures marked [extensible] begin with `uint32_t struct_size`, set by the
 *    side that fills them in. Fields are only ever appended, and each append raises TB_ABI_MINOR.
 *    The receiver uses min(struct_size, its own sizeof) bytes and treats the rest as zero; it never
 *    tests for equality, and refuses a size below the `TB_*_SIZE_V1` of that structure as an
 *    argument that breaks the contract (TB_E_INVALID).
 *  - Rule "tables": a table of functions may end anywhere from its `TB_*_API_SIZE_V1` on. No
 *    function pointer within its struct_size is NULL: what a backend does not implement answers
 *    TB_UNSUPPORTED with a text. A host treats a function beyond struct_size
 *    as one that declines. stubs.h has such answers for all functions. A backend needs at least:
 *    devices; streams without rehearsals; events without timing; memory's allocate, free,
 *    record_use and info; transfers. Operators, generators, statistics and limits of memory, pinned
 *    memory, custom kernels, profiler, captures, switches, native handles and graphs are optional.
 *  - Rule "status": functions return a `tb_status`. 0 is success; a positive value means "declined,
 *    nothing was done"; a negative one is an error. `tb_error` is memory of the caller and may be
 *    NULL.
 *  - Rule "names": a name that the backend does not know (operator, switch, report) is
 *    TB_UNSUPPORTED, because another backend may know it; a known one with a bad value is
 *    TB_E_INVALID.
 *  - Rule "bounds": every address in a call is checked before anything is enqueued. A tensor with
 *    elements, and a range of bytes, lies within one live allocation of the stream's device, and,
 *    where `base` is known, within its storage; else the answer is TB_E_INVALID.
 *  - Rule "borrowing": arguments are borrowed for the duration of the call. Strings are
 *    NUL-terminated UTF-8.
 *  - Rule "threads": every function may be called from any thread at any time, unless it says
 *    otherwise. Calls that name the same stream are serialised by the backend, in call order per
 *    thread; different streams run concurrently.
 *  - Rule "process": no function aborts, exits, throws or longjmps. After fork() every function
 *    fails in the child with TB_E_STATE. A backend is never unloaded; at the end of the process its
 *    own threads must not use what its destructors have destroyed.
 *  - Rule "units": sizes are bytes unless a name says elements; strides are elements; times are
 *    nanoseconds unless a name says otherwise.
 */
#ifndef TENSOR_BACKEND_PLUGIN_H
#define TENSOR_BACKEND_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each append to a table or structure raises the minor version. Minor version 1 added rehearsals,
 * the profiler's calls and the switches' reports; 2 the types of 8 bits; 3 graphs; 4
 * requests for custom kernels; 5 made the reports JSON; 6 shared memory. */
#define TB_ABI_MAJOR 1
#define TB_ABI_MINOR 6
#define TB_PLUGIN_MAGIC UINT64_C(0x314e475542544c43) /* "CLTBUGN1", little-endian */
#define TB_MAX_RANK 64                               /* largest ndim a backend has to accept */

/* ---- Status and errors */

typedef int32_t tb_status;
enum {
  TB_OK = 0,
  TB_UNSUPPORTED =
      1, /* declined: nothing was enqueued or written; the host may run the operator elsewhere */
  TB_NOT_READY = 2, /* a query: the work is not finished yet */

  TB_E_INVALID = -1,       /* an argument breaks the contract */
  TB_E_ABI = -2,           /* of tb_plugin_get_api alone: a version that cannot work */
  TB_E_OUT_OF_MEMORY = -3, /* device, pinned or host memory; the process may go on */
  TB_E_DEVICE_LOST = -4,   /* the device or a stream failed; see the text for the kernel */
  TB_E_COMPILE = -5,       /* a kernel did not build; the text holds the compiler's log */
  TB_E_UNAVAILABLE = -6,   /* this machine has no such driver, device or plugin */
  TB_E_STATE = -7, /* the object or process is in a state that forbids the call (after fork, ...) */
  TB_E_INTERNAL = -8, /* a defect of the backend */
  TB_E_INDEX = -9     /* an index in a tensor lies outside of its dimension. Only the device sees
                       * this, as a rule after the operator has returned; so the next call that
                       * waits for the stream or the device raises it, as it does for a value that
                       * breaks an operator's contract (TB_E_INVALID). The work enqueued after it
                       * runs all the same: a read at that index gives zero, a write is left out. */
};

/* Why an operator was declined (tb_error.reason with TB_UNSUPPORTED). */
enum {
  TB_REASON_NONE = 0,
  TB_REASON_OPERATOR = 1, /* no such operator */
  TB_REASON_DTYPE = 2,
  TB_REASON_LAYOUT = 3, /* strides or overlap */
  TB_REASON_RANK = 4,
  TB_REASON_SIZE = 5,
  TB_REASON_DEVICE_FEATURE = 6, /* the device lacks it (fp64, atomics, ...) */
  TB_REASON_ARGUMENT = 7,       /* a value or tag that this backend does not know */
  TB_REASON_DISABLED = 8        /* switched off by the user */
};

/* Caller-owned error buffer [extensible]. The callee sets code, reason, native and writes at most
 * `capacity` bytes of NUL-terminated text to `message`. */
typedef struct tb_error {
  uint32_t struct_size;
  tb_status code;
  uint32_t reason; /* TB_REASON_* */
  int32_t native;  /* the driver's own code (cl_int), 0 if none */
  uint64_t capacity;
  char* message; /* may be NULL */
} tb_error;
#define TB_ERROR_SIZE_V1 32u

/* ---- Values */

typedef uint64_t tb_address; /* a device address; 0: no memory */

/* Element type; codes and meaning are DLPack's (DLDataType). */
typedef struct tb_dtype {
  uint8_t code; /* TB_DTYPE_* */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} tb_dtype;
enum {
  TB_DTYPE_INT = 0,
  TB_DTYPE_UINT = 1,
  TB_DTYPE_FLOAT = 2,
  TB_DTYPE_BFLOAT = 4,
  TB_DTYPE_COMPLEX = 5,
  TB_DTYPE_BOOL = 6,
  /* since ABI 1.2; bits: 8 */
  TB_DTYPE_FLOAT8_E4M3FN = 10,
  TB_DTYPE_FLOAT8_E4M3FNUZ = 11,
  TB_DTYPE_FLOAT8_E5M2 = 12,
  TB_DTYPE_FLOAT8_E5M2FNUZ = 13,
  TB_DTYPE_FLOAT8_E8M0FNU = 14
};

enum { TB_TENSOR_READ_ONLY = 1u }; /* tb_tensor.flags */

/* A strided tensor in device memory [extensible]. Element (i0, i1, ...) lies at
 * address + itemsize * sum(i_k * strides[k]). Strides may be 0 or negative; a dimension may be 0.
 */
typedef struct tb_tensor {
  uint32_t struct_size;
  uint32_t flags;
  tb_address address;  /* of element (0, 0, ...), the storage offset included */
  tb_address base;     /* start of the storage, for bounds checks; 0 if unknown */
  uint64_t base_bytes; /* size of the storage */
  tb_dtype dtype;
  uint32_t ndim;
  const int64_t* sizes;   /* ndim entries */
  const int64_t* strides; /* ndim entries, in elements */
  const void* next;       /* reserved, NULL */
} tb_tensor;
#define TB_TENSOR_SIZE_V1 64u

typedef struct tb_stream_s* tb_stream;         /* an in-order queue of one device */
typedef struct tb_event_s* tb_event;           /* a point in a stream */
typedef struct tb_generator_s* tb_generator;   /* a random number generator of one device */
typedef struct tb_library_s* tb_library;       /* a compiled custom program */
typedef struct tb_kernel_s* tb_kernel;         /* one kernel of a tb_library */
typedef const struct tb_op_s* tb_op;           /* one operator; valid for the life of the process */
typedef struct tb_graph_s* tb_graph;           /* recorded work of one stream */
typedef struct tb_graph_pool_s* tb_graph_pool; /* the memory that recorded work uses */

/* Tag of a tb_value. A Python-style number stays a number (BOOL, INT, FLOAT, COMPLEX), also where
 * the schema says Tensor, so that type promotion keeps its rules. */
enum {
  TB_NONE = 0,
  TB_BOOL = 1,    /* i: 0 or 1 */
  TB_INT = 2,     /* i */
  TB_FLOAT = 3,   /* f */
  TB_COMPLEX = 4, /* p: const double[2] */
  TB_STRING = 5,  /* p: const char *, count bytes without the NUL */
  TB_DTYPE = 6,   /* dtype */
  TB_TENSOR = 7,  /* p: const tb_tensor * */
  TB_TENSOR_LIST =
      8,           /* p: const tb_tensor *const *, count entries, NULL entries are absent tensors */
  TB_INT_LIST = 9, /* p: const int64_t *, count entries */
  TB_FLOAT_LIST = 10, /* p: const double *, count entries */
  TB_BOOL_LIST = 11,  /* p: const uint8_t *, count entries */
  TB_GENERATOR = 12   /* p: tb_generator */
};

/* A tagged argument. An unknown tag is declined with TB_UNSUPPORTED. */
typedef struct tb_value {
  uint32_t tag;
  uint32_t count; /* entries of a list, bytes of a string; backends ignore it otherwise */
  union {
    int64_t i;
    double f;
    const void* p;
    tb_dtype dtype;
  } as;
} tb_value;

/* ---- Devices */

enum { TB_DEVICE_CPU = 1, TB_DEVICE_GPU = 2, TB_DEVICE_ACCELERATOR = 3 };
enum { /* tb_device_properties.features */
       TB_FEATURE_FP64 = 1u << 0,
       TB_FEATURE_FP16_ARITHMETIC = 1u << 1,
       TB_FEATURE_UNIFIED_MEMORY = 1u << 2,
       TB_FEATURE_SUBGROUPS = 1u << 3,
       TB_FEATURE_INT64_ATOMICS = 1u << 4,
       TB_FEATURE_FLOAT_ATOMICS = 1u << 5
};

/* [extensible] */
typedef struct tb_device_properties {
  uint32_t struct_size;
  int32_t index;
  uint32_t kind;     /* TB_DEVICE_* */
  uint32_t features; /* TB_FEATURE_* */
  char name[128];
  char vendor[128];
  char platform[128];
  char driver_version[128];
  char language_version[128]; /* e.g. "OpenCL C 1.2" */
  uint64_t global_memory;
  uint64_t largest_allocation;
  uint64_t local_memory;
  uint64_t recommended_memory; /* memory limits are ratios of this size */
  uint32_t compute_units;
  uint32_t max_work_group_size;
  uint32_t clock_mhz;
  uint32_t reserved;
} tb_device_properties;
#define TB_DEVICE_PROPERTIES_SIZE_V1 704u

typedef struct tb_device_api { /* [extensible] */
  uint32_t struct_size;
  uint32_t reserved;
  /* Number of usable devices. Loads the driver on the first call; no driver is TB_OK with 0
   * devices. */
  tb_status (*count)(int32_t* count, tb_error* error);
  /* Text that says which drivers and devices were found or refused, and why. Returns the length of
   * the whole text; at most capacity - 1 bytes of it are written. Never fails. */
  uint64_t (*report)(char* text, uint64_t capacity);
  tb_status (*properties)(int32_t device, tb_device_properties* properties, tb_error* error);
  /* Waits for all streams of the device; raises an asynchronous failure of any of them. */
  tb_status (*synchronize)(int32_t device, tb_error* error);
} tb_device_api;

/* ---- Streams and events */

typedef struct tb_stream_api { /* [extensible] */
  uint32_t struct_size;
  uint32_t reserved;
  tb_status (*default_stream)(int32_t device, tb_stream* stream,
                              tb_error* error); /* never destroyed */
  /* `priority` is a hint that a backend may ignore. */
  tb_status (*create)(int32_t device, int32_t priority, tb_stream* stream, tb_error* error);
  /* Work already enqueued finishes; memory freed on the stream is reclaimed. NULL is accepted. */
  tb_status (*destroy)(tb_stream stream, tb_error* error);
  tb_status (*device)(tb_stream stream, int32_t* device, tb_error* error);
  tb_status (*synchronize)(tb_stream stream,
                           tb_error* error); /* raises a pending asynchronous failure, once */
  tb_status (*query)(tb_stream stream, tb_error* error); /* TB_OK when idle, else TB_NOT_READY */
  tb_status (*wait_event)(tb_stream stream, tb_event event,
                          tb_error* error); /* later work waits; the host does not */
  /* TB_STREAM_API_SIZE_V1 ends here. */

  /* A rehearsal finds out which programs some work needs, without waiting for the compiler. Between
   * begin and end, work on the stream is executed up to the first launch whose program has not been
   * built. From there on nothing is executed: missing programs are recorded, and a call that would
   * return results to the host fails with TB_E_STATE. Use a separate stream, because a rehearsal
   * affects the work that any thread enqueues on it. end gives the number of missing programs in
   * `*missing`; 0: all work was executed. build_missing builds as many of them as the machine
   * compiles at once and gives the number still missing in `*left`. All three are TB_UNSUPPORTED in
   * a backend that compiles nothing. */
  tb_status (*begin_rehearsal)(tb_stream stream, tb_error* error);
  tb_status (*end_rehearsal)(tb_stream stream, uint32_t* missing, tb_error* error);
  tb_status (*build_missing)(tb_stream stream, uint32_t* left, tb_error* error);
} tb_stream_api;

enum { TB_EVENT_TIMING = 1u };
typedef struct tb_event_api { /* [extensible] */
  uint32_t struct_size;
  uint32_t reserved;
  tb_status (*create)(int32_t device, uint32_t flags, tb_event* event, tb_error* error);
  tb_status (*destroy)(tb_event event, tb_error* error); /* NULL is accepted */
  tb_status (*record)(tb_event event, tb_stream stream,
                      tb_error* error); /* replaces an earlier record */
  tb_status (*query)(tb_event event,
                     tb_error* error); /* TB_OK when reached; never recorded: TB_NOT_READY */
  tb_status (*synchronize)(tb_event event, tb_error* error); /* never recorded: returns at once */
  /* Milliseconds between two recorded events with timing, from device timestamps; waits for both.
   * An event without timing, or one that was never recorded, is an error. */
  tb_status (*elapsed_ms)(tb_event start, tb_event end, double* milliseconds, tb_error* error);
} tb_event_api;

/* ---- Memory */

/* `current` is the value now; the other counts begin at the last reset of their kind. */
typedef struct tb_memory_stat {
  int64_t current;
  int64_t peak;
  int64_t allocated; /* accumulated increments */
  int64_t freed;     /* accumulated decrements */
} tb_memory_stat;
typedef struct tb_memory_stats { /* [extensible] */
  uint32_t struct_size;
  uint32_t reserved;
  tb_memory_stat requested_bytes; /* live, as requested by callers */
  tb_memory_stat allocated_bytes; /* the same, rounded to blocks */
  tb_memory_stat active_bytes;    /* allocated, or freed but still used by a stream */
  tb_memory_stat reserved_bytes;  /* taken from the driver */
  tb_memory_stat allocations;     /* live blocks */
  tb_memory_stat segments;        /* driver allocations */
  tb_memory_stat pinned_bytes;    /* host memory pinned by this backend */
  uint64_t allocation_retries;    /* out of memory at first: cached memory was freed */
  uint64_t out_of_memory_errors;
  uint64_t driver_bytes;      /* device memory of this process, without programs */
  uint64_t recommended_bytes; /* recommended maximum */
  uint64_t limit_bytes;       /* hard limit in force; 0 = none */
  uint64_t low_limit_bytes;   /* garbage collection begins here; 0 = never */
} tb_memory_stats;
#define TB_MEMORY_STATS_SIZE_V1 280u

typedef struct tb_memory_info { /* [extensible] */
  uint32_t struct_size;
  int32_t device;
  tb_address base; /* of the allocation */
  uint64_t size;   /* requested bytes */
} tb_memory_info;
#define TB_MEMORY_INFO_SIZE_V1 24u

typedef struct tb_memory_api { /* [extensible] */
  uint32_t struct_size;
  uint32_t reserved;
  /* Memory usable at once by work on `stream`. 0 bytes gives address 0. Aligned to at least 512.
   * The content is undefined. On failure: TB_E_OUT_OF_MEMORY with a text of figures and advice;
   * later calls may succeed. */
  tb_status (*allocate)(int32_t device, uint64_t bytes, tb_stream stream, tb_address* address,
                        tb_error* error);
  /* Stream-ordered: `address` is exactly what allocate returned. Work enqueued before on `stream`,
   * and on streams named to record_use, may still use the memory. Address 0 is accepted. */
  tb_status (*free)(tb_address address, tb_stream stream, tb_error* error);
  tb_status (*record_use)(tb_address address, tb_stream stream,
                          tb_error* error); /* `stream` uses the memory, too */
  tb_status (*info)(tb_address address, tb_memory_info* info,
                    tb_error* error); /* any address inside */
  tb_status (*stats)(int32_t device, tb_memory_stats* stats, tb_error* error);
  tb_status (*reset_peak_stats)(int32_t device, tb_error* error);
  tb_status (*reset_accumulated_stats)(int32_t device, tb_error* error);
  tb_status (*empty_cache)(int32_t device,
                           tb_error* error); /* gives unoccupied memory back to the driver */
  /* Limit = fraction * recommended; 0 = none; outside 0..2: TB_E_INVALID. */
  tb_status (*set_fraction)(int32_t device, double fraction, tb_error* error);
  tb_status (*set_watermarks)(int32_t device, double high, double low,
                              tb_error* error); /* ratios; 0 disables */
  /* Page-locked host memory for fast and truly asynchronous copies. */
  tb_status (*allocate_host)(int32_t device, uint64_t bytes, void** memory, tb_error* error);
  tb_status (*free_host)(void* memory, tb_error* error); /* waits for copies that use it */
  tb_status (*is_host)(const void* memory, int32_t* is_pinned, tb_error* error);
  /* Host view of [address, address + bytes) after all earlier work of the stream; unmap before the
   * device uses it again. Zero-copy on unified memory, else TB_UNSUPPORTED. */
  tb_status (*map)(tb_address address, uint64_t bytes, tb_stream stream, void** memory,
                   tb_error* error);
  tb_status (*unmap)(tb_address address, void* memory, tb_stream stream, tb_error* error);
} tb_memory_api;

/* Byte copies, in stream order. Without TB_COPY_ASYNC the host memory may be reused as soon as the
 * call returns (to_host: the data has arrived). With it the caller keeps the host memory alive and
 * unchanged until the stream has passed the copy, which is asynchronous where the memory is pinned.
 */
enum { TB_COPY_ASYNC = 1u };
typedef struct tb_transfer_api { /* [extensible] */
  uint32_t struct_size;
  uint32_t reserved;
  tb_status (*to_device)(tb_stream stream, tb_address target, const void* source, uint64_t bytes,
                         uint32_t flags, tb_error* error);
  tb_status (*to_host)(tb_stream stream, void* target, tb_address source, uint64_t bytes,
                       uint32_t flags, tb_error* error);
  /* The ranges must not overlap. They may be on two devices of one backend. The copy comes after
   * the earlier work of both streams; `source_stream` may equal `stream`. */
  tb_status (*on_device)(tb_stream stream, tb_address target, tb_stream source_stream,
                         tb_address source, uint64_t bytes, tb_error* error);
  /* Repeats a pattern of 1, 2, 4, 8 or 16 bytes. `bytes` is a multiple of the pattern's size, and
   * `target` is aligned to it. */
  tb_status (*fill)(tb_stream stream, tb_address target, const void* pattern,
                    uint32_t pattern_bytes, uint64_t bytes, tb_error* error);
} tb_transfer_api;

/* ---- Operators */

/* Gives output `index` the shape sizes[0..ndim), contiguous, and describes it in `*tensor` (storage
 * allocated for the call's stream). For operators whose output shape depends on data. */
typedef tb_status (*tb_resize_out)(void* context, uint32_t index, const int64_t* sizes,
                                   uint32_t ndim, tb_tensor* tensor);

enum {                             /* tb_call.flags */
       TB_CALL_DETERMINISTIC = 1u, /* the same bits in every run, whatever the switches say */
       TB_CALL_ALWAYS = 2u         /* run also a disabled operator: it is a part of another one */
};

/* The contract of operators. Names, schemas, families and flags are those of the operator table
 * (`ocltensor-conformance --plugin cpu --list --verbose` prints it); results are ATen's.
 *  - The host infers shape and dtype of the outputs. The backend broadcasts: inputs come in shapes
 *    of their own. Inputs of several dtypes are promoted by the backend as ATen does, or declined
 *    (TB_REASON_DTYPE). An output of a pointwise operator may have a wider dtype than the result:
 *    it is converted to that, or declined. A call whose shapes do not fit is TB_E_INVALID.
 *  - A number may stand where the schema says Tensor (see the tags). TB_NONE is an absent argument.
 *  - Inputs may have any strides, 0 and negative ones included; no two elements of an output share
 *    memory. Pointwise operators, and those that change a part of `self`, may be given an input's
 *    memory as output; any other one that cannot have it declines (TB_REASON_LAYOUT).
 *  - `self` of copy.out and fill.Scalar_out is not read.
 *  - Integers wrap; NaN and infinities are computed with as IEEE 754 says. Results of 16-bit types
 *    are computed in float32 or better. The kit's tolerance grows with the roundings that a result
 *    needs; what moves or selects values is exact.
 *  - With TB_CALL_DETERMINISTIC, the same call gives the same bits in every run. Without it, sums
 *    may be added up in an order that varies. */

/* One call of an operator [extensible]. `args` are all inputs in the schema's order, defaults
 * filled in, without the out arguments; `outs` are the out arguments in order, allocated by the
 * host with inferred shape and dtype; an out argument that is a list takes one entry of `outs` per
 * tensor. An out may overlap an input only where both describe exactly the same elements. */
typedef struct tb_call {
  uint32_t struct_size;
  uint32_t flags; /* TB_CALL_* */
  tb_op op;
  tb_stream stream;
  const tb_value* args;
  const tb_tensor* const* outs;
  uint32_t arg_count;
  uint32_t out_count;
  tb_resize_out resize_out; /* may be NULL without TB_OP_DATA_DEPENDENT_SHAPE */
  void* resize_context;
} tb_call;
#define TB_CALL_SIZE_V1 64u

enum {                                  /* tb_op_info.flags */
       TB_OP_DATA_DEPENDENT_SHAPE = 1u, /* needs resize_out */
       TB_OP_RANDOM = 2u                /* takes a generator */
};
typedef struct tb_op_info { /* [extensible]; strings live as long as the process */
  uint32_t struct_size;
  uint32_t flags;
  const char* name;   /* "add.out"; of another library than ATen: "torchvision::nms.out" */
  const char* schema; /* the out-variant's schema, without an "aten::" */
  const char* family; /* "pointwise", "reduce", ... */
} tb_op_info;
#define TB_OP_INFO_SIZE_V1 32u

typedef struct tb_operator_api { /* [extensible] */
  uint32_t struct_size;
  uint32_t reserved;
  tb_status (*count)(uint32_t* count, tb_error* error);
  tb_status (*at)(uint32_t index, tb_op* op, tb_op_info* info, tb_error* error);
  /* By ATen name with overload, e.g. "add.out"; other libraries' operators have their namespace
   * before it. Unknown: TB_UNSUPPORTED, TB_REASON_OPERATOR. */
  tb_status (*find)(const char* name, tb_op* op, tb_error* error);
  /* Would invoke accept this call? Reads metadata only, compiles and enqueues nothing. TB_OK rules
   * out TB_UNSUPPORTED from invoke on the same metadata. */
  tb_status (*supports)(const tb_call* call, tb_error* error);
  /* Enqueues the operator. TB_UNSUPPORTED leaves outputs and stream untouched. */
  tb_status (*invoke)(const tb_call* call, tb_error* error);
} tb_operator_api;

/* ---- Random numbers */

/* Philox4x32-10 generators. An operator that draws n numbers reads a fixed, documented range of the
 * counter, whatever the launch geometry, and advances the generator under its lock. State: 16
 * bytes, seed then offset, little-endian. */
#define TB_GENERATOR_STATE_BYTES 16u
typedef struct tb_generator_api { /* [extensible] */
  uint32_t struct_size;
  uint32_t reserved;
  tb_status (*default_generator)(int32_t device, tb_generator* generator,
                                 tb_error* error); /* never destroyed */
  tb_status (*create)(int32_t device, uint64_t seed, tb_generator* generator, tb_error* error);
  tb_status (*destroy)(tb_generator generator, tb_error* error);
  tb_status (*set_seed)(tb_generator generator, uint64_t seed,
                        tb_error* error); /* offset becomes 0 */
  tb_status (*get_seed)(tb_generator generator, uint64_t* seed, tb_error* error);
  tb_status (*get_state)(tb_generator generator, void* state, uint64_t bytes, tb_error* error);
  tb_status (*set_state)(tb_generator generator, const void* state, uint64_t bytes,
                         tb_error* error);
} tb_generator_api;

/* ---- Custom kernels */

typedef struct tb_kernel_info { /* [extensible] */
  uint32_t struct_size;
  uint32_t argument_count;
  uint64_t max_work_group_size;
  uint64_t preferred_multiple;
  uint64_t local_memory;
  uint64_t private_memory;
  const char* name; /* lives as long as the library */
} tb_kernel_info;
#define TB_KERNEL_INFO_SIZE_V1 48u

typedef struct tb_kernel_api { /* [extensible] */
  uint32_t struct_size;
  uint32_t reserved;
  /* Compiles OpenCL C for one device, unless the same source and options have been compiled before,
   * in this process or an earlier one. A failed build is TB_E_COMPILE with the compiler's log and
   * the source line. A backend says which headers of its own a source may include. */
  tb_status (*compile)(int32_t device, const char* source, const char* options, tb_library* library,
                       tb_error* error);
  tb_status (*destroy)(tb_library library, tb_error* error);
  tb_status (*count)(tb_library library, uint32_t* count, tb_error* error);
  tb_status (*at)(tb_library library, uint32_t index, tb_kernel* kernel, tb_kernel_info* info,
                  tb_error* error);
  tb_status (*find)(tb_library library, const char* name, tb_kernel* kernel, tb_kernel_info* info,
                    tb_error* error);
  /* Positional arguments. A tensor binds one kernel parameter (__global T *, at its first element:
   * the address must be aligned as the device requires) or, if the kernel has one more parameter
   * for each tensor and list, two: (__global T *base, ulong byte_offset). A number is converted to
   * the parameter's type where the driver reports that type; else INT becomes a long, FLOAT a
   * float, BOOL an int. A list is copied to a buffer and binds like a tensor. STRING passes its
   * bytes by value (a packed structure, or a type that no number converts to). `group` may be NULL.
   * `threads` counts work-items in all, not groups. */
  tb_status (*launch)(tb_stream stream, tb_kernel kernel, const tb_value* args, uint32_t arg_count,
                      uint32_t rank, const uint64_t* threads, const uint64_t* group,
                      tb_error* error);
  /* TB_KERNEL_API_SIZE_V1 ends here. */
  /* Has other processes compile sources, side by side, in the order given; a later compile() with
   * the same device and options finds what they made, or waits for the one that is being made.
   * Returns at once. `asked` (may be NULL) becomes how many they will compile: none where there are
   * no such processes, or where all are compiled. Mistakes in a source are compile()'s to report.
   */
  tb_status (*request)(int32_t device, const char* const* sources, uint32_t count,
                       const char* options, uint32_t* asked, tb_error* error);
} tb_kernel_api;

/* ---- Profiler, capture, switches, interop */

typedef struct tb_counters { /* [extensible]; since process start */
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t operators; /* successful invoke calls */
  uint64_t launches;  /* kernels enqueued */
  uint64_t copies;    /* host-device and device-device copies */
  uint64_t copied_bytes;
  uint64_t program_builds; /* compiled from source */
  uint64_t program_loads;  /* taken from the disk cache */
} tb_counters;
#define TB_COUNTERS_SIZE_V1 56u

/* What a row of the profiler's statistics counts. */
enum {
  TB_STATISTIC_OPERATOR = 1, /* times on the device */
  TB_STATISTIC_KERNEL = 2,   /* the same */
  TB_STATISTIC_COPY = 3,     /* the same; named by direction */
  TB_STATISTIC_FALLBACK = 4, /* times of the host, as for all further kinds */
  TB_STATISTIC_BUILD = 5,    /* programs compiled */
  TB_STATISTIC_LOAD = 6,     /* programs taken from the disk cache */
  TB_STATISTIC_HIT = 7       /* programs found in memory */
};
typedef struct tb_statistic { /* [extensible] */
  uint32_t struct_size;
  uint32_t kind; /* TB_STATISTIC_* */
  const char* name;
  uint64_t count;
  uint64_t total_ns;
  uint64_t longest_ns;
  uint64_t host_ns; /* duration of the calls themselves on the host */
  uint64_t bytes;   /* of copies, and of the copies of fallbacks */
} tb_statistic;
#define TB_STATISTIC_SIZE_V1 56u

/* A call that has ended, or a command that has run [extensible]. */
enum { TB_RECORD_CALL = 1, TB_RECORD_COMMAND = 2 };
typedef struct tb_record {
  uint32_t struct_size;
  uint32_t kind;        /* TB_RECORD_* */
  const char* category; /* "operator", "copy", "fallback", "build", "load", "hit", "range"; of
                           commands "kernel", "copy", "fill" */
  const char* name;
  const char* operation; /* of a command: the operator that enqueued it, or NULL */
  uint64_t call;         /* the call's number; of a command that of its call, or 0 */
  uint64_t correlation;  /* the number that the thread last gave to correlate */
  int64_t queued_ns;     /* of a command: when it was enqueued. All times are steady_clock's. */
  int64_t begin_ns;
  int64_t end_ns;
  uint64_t bytes;
  uint64_t stream; /* of a command: the stream's number, unique in its device */
  int32_t device;  /* of a command */
  int32_t thread;  /* of a call: the operating system's thread id */
} tb_record;
#define TB_RECORD_SIZE_V1 96u

typedef struct tb_profiler_api { /* [extensible] */
  uint32_t struct_size;
  uint32_t reserved;
  /* Begins a trace of all threads and devices. `mode`: "interval", "event" or "interval,event".
   * With `wait_until_completed` each operator ends with its stream's synchronisation. `path` NULL:
   * a new file in the current folder. TB_E_INVALID while a trace is taken. */
  tb_status (*start)(const char* mode, int32_t wait_until_completed, const char* path,
                     tb_error* error);
  tb_status (*stop)(tb_error* error); /* waits for all streams and writes the file */
  tb_status (*is_enabled)(int32_t* enabled, tb_error* error);
  tb_status (*push_range)(const char* name, tb_error* error); /* ranges of one thread nest */
  tb_status (*pop_range)(tb_error* error);
  tb_status (*counters)(tb_counters* counters, tb_error* error);
  /* TB_PROFILER_API_SIZE_V1 ends here. */
  /* Mark the beginning and the end of a call of the host in this thread; calls nest. `category` is
   * "fallback", `name` the operator's. The calls appear in traces, logs and statistics, and cost
   * next to nothing while nothing is recorded. end_call: TB_E_INVALID if no call is open. */
  tb_status (*begin_call)(const char* category, const char* name, tb_error* error);
  tb_status (*end_call)(tb_error* error);
  /* Waits for the devices, then calls `row` for every row, longest total of a kind first. The rows
   * cover everything recorded so far: work is recorded while a trace is taken, while a log is on,
   * and while a listener is set. */
  tb_status (*statistics)(void (*row)(void* context, const tb_statistic* row), void* context,
                          tb_error* error);
  tb_status (*reset_statistics)(tb_error* error);
  tb_status (*print_statistics)(tb_error* error); /* as tables, to standard error */
  /* Writes what is due at the end of the process (traces and tables that settings ask for) now.
   * Without this call it is written at exit. Only the first call has an effect. */
  tb_status (*finish)(tb_error* error);
  /* Sets a listener: `hear` receives every record from now on, in any thread and with a lock held,
   * so it must not call the backend. `hear` NULL waits for all streams and removes the listener.
   * TB_E_INVALID if there is a listener already. */
  tb_status (*listen)(void (*hear)(void* context, const tb_record* record), void* context,
                      tb_error* error);
  /* The number that the records of this thread's calls and commands carry from now on. */
  tb_status (*correlate)(uint64_t number, tb_error* error);
} tb_profiler_api;

typedef struct tb_capture_api { /* [extensible] */
  uint32_t struct_size;
  uint32_t reserved;
  tb_status (*is_enabled)(int32_t* enabled, tb_error* error);
  tb_status (*is_capturing)(int32_t* capturing, tb_error* error);
  /* TB_E_STATE unless OCLTENSOR_CAPTURE_ENABLED was 1 when the backend loaded the driver. */
  tb_status (*start)(const char* path, tb_error* error);
  tb_status (*stop)(tb_error* error);
} tb_capture_api;

typedef struct tb_switch_api { /* [extensible] */
  uint32_t struct_size;
  uint32_t reserved;
  /* Settings by name, values as text: the environment variables' names, and the switches of the
   * backend. set checks the value and answers TB_E_INVALID with the accepted range. A host passes
   * each of its settings to every backend, so a name that the backend does not know is
   * TB_UNSUPPORTED from set and get. count and at list all names that get knows, perhaps none. */
  tb_status (*set)(const char* name, const char* value, tb_error* error);
  tb_status (*get)(const char* name, char* value, uint64_t capacity, tb_error* error);
  tb_status (*count)(uint32_t* count, tb_error* error);
  tb_status (*at)(uint32_t index, const char** name, tb_error* error);
  /* TB_SWITCH_API_SIZE_V1 ends here. */
  /* Reports on the backend's state, as JSON: an array of rows, which are objects with at least
   * these members (texts, where nothing else is said). Subjects:
   *   providers     name, library, available (bool), enabled (bool), version, what (it is),
   *                 missing (why), operators (array of patterns of names)
   *   algorithms    family, id, runs (number), last (bool: the family's last choice), disabled
   *                 (bool), general (bool: it accepts every problem), name
   *   measurements  problem (device and class of shapes), id (the choice), microseconds (number;
   *                 null: it failed, or its results were wrong), best (bool)
   * `*needed` becomes the size of the whole text with its NUL. At most `capacity` bytes are
   * written, the last of them a NUL; nothing if `capacity` is 0. An unknown subject is
   * TB_UNSUPPORTED. */
  tb_status (*report)(const char* subject, char* text, uint64_t capacity, uint64_t* needed,
                      tb_error* error);
} tb_switch_api;

/* Memory that another library of the device's vendor sees, too, and other processes [extensible];
 * since ABI 1.6. */
typedef struct tb_shared_memory {
  uint32_t struct_size;
  int32_t number;   /* the device's number in that library */
  char library[16]; /* "CUDA" */
  uint64_t address; /* the byte's in that library */
  uint64_t segment; /* the first byte's of the segment in this backend, */
  uint64_t bytes;   /* and its size: what a descriptor stands for */
} tb_shared_memory;
#define TB_SHARED_MEMORY_SIZE_V1 48u

typedef struct tb_interop_api { /* [extensible]; native handles are OpenCL's cl_mem,
                                   cl_command_queue, ... */
  uint32_t struct_size;
  uint32_t reserved;
  /* Not retained; valid while the allocation lives. */
  tb_status (*buffer)(tb_address address, void** native, uint64_t* byte_offset, tb_error* error);
  tb_status (*queue)(tb_stream stream, void** native, tb_error* error);
  tb_status (*context)(int32_t device, void** native, tb_error* error);
  tb_status (*device)(int32_t device, void** native, tb_error* error);
  /* TB_INTEROP_API_SIZE_V1 ends here. Shared memory: TB_UNSUPPORTED, with the reason, where the
   * device has none. Both sides see one memory, and nothing orders their work: who changes sides
   * waits on the host first, for streams by synchronize, for the other library by
   * shared_synchronize. */
  tb_status (*shared_place)(tb_address address, tb_shared_memory* place, tb_error* error);
  tb_status (*shared_synchronize)(int32_t device, tb_error* error);
  /* A file descriptor of the segment around the address, which the caller closes. It may be sent to
   * another process, and keeps the memory itself, but not its content: the pool gives a freed
   * address to others. */
  tb_status (*export_memory)(tb_address address, int32_t* descriptor, tb_error* error);
  /* A segment of another process as an allocation for `stream`, until release_import. The caller
   * keeps the descriptor. */
  tb_status (*import_memory)(tb_stream stream, int32_t descriptor, uint64_t bytes,
                             tb_address* address, tb_error* error);
  /* The backend's address of memory of the other library, until release_import. TB_E_INVALID where
   * that memory was not made to be exported. `*is_own` 1: it is memory of this backend, which must
   * not be released. */
  tb_status (*import_address)(tb_stream stream, uint64_t library_address, uint64_t bytes,
                              tb_address* address, int32_t* is_own, tb_error* error);
  /* Any address in it. Waits for the streams that use it; free does not take it. */
  tb_status (*release_import)(tb_address address, tb_error* error);
  /* Copies from memory of the other library, and waits for that and what it had to do before. */
  tb_status (*copy_from_library)(tb_stream stream, tb_address target, uint64_t library_address,
                                 uint64_t bytes, tb_error* error);
} tb_interop_api;

/* ---- Graphs */

/* What a recording has become [extensible]. */
typedef struct tb_graph_info {
  uint32_t struct_size;
  int32_t device;
  uint64_t launches;      /* kernels */
  uint64_t transfers;     /* fills, copies on the device, and uploads */
  uint64_t random_blocks; /* counter blocks of generators that each replay takes */
} tb_graph_info;
#define TB_GRAPH_INFO_SIZE_V1 32u

/* A stream's work, recorded once and replayed with little work of the host.
 *
 * While a stream records, the work that any thread enqueues on it is kept and not executed; results
 * of operators are undefined until a replay. A call that needs more than the stream's device can do
 * by itself fails with TB_E_STATE, and so does the recording's end: copies to the host; copies from
 * it, except asynchronous ones from pinned memory, which each replay reads again; synchronisation;
 * events; mapped memory; the native queue. Programs are built as ever. A replay executes the work
 * with the same addresses: memory that existed before must still exist. Memory allocated for the
 * stream while it records is of the recording's pool: what is freed meanwhile serves the recording
 * again, and nothing else before the pool is gone. What is still allocated at the end (results) is
 * freed as other memory is. Of graphs with a common pool, a replay invalidates the results of the
 * others, unless they are replayed in the order in which they were recorded.
 *
 * Generators: a replay draws the numbers that the work would draw now, and advances the generators.
 * A device has at most one recording at a time; meanwhile only recorded work may draw from the
 * generators in question, and seeding them is TB_E_STATE. */
typedef struct tb_graph_api { /* [extensible]; since ABI 1.3 */
  uint32_t struct_size;
  uint32_t reserved;
  tb_status (*create_pool)(int32_t device, tb_graph_pool* pool, tb_error* error);
  /* The pool is gone when its graphs are, too; it then gives its memory back. NULL is accepted. */
  tb_status (*destroy_pool)(tb_graph_pool pool, tb_error* error);
  /* `generators` are those from which the work may draw, beside the device's default one; they
   * outlive the graph. */
  tb_status (*begin)(tb_stream stream, tb_graph_pool pool, const tb_generator* generators,
                     uint32_t generator_count, tb_error* error);
  /* Ends the recording in any case. `graph` NULL discards it; else it is TB_E_STATE with the
   * reason, and `*graph` NULL, if a call has failed the recording. */
  tb_status (*end)(tb_stream stream, tb_graph* graph, tb_error* error);
  tb_status (*is_recording)(tb_stream stream, int32_t* recording, tb_error* error);
  /* Enqueues the work on any stream of the device. The caller keeps replays of one graph, and of
   * graphs with a common pool, apart. */
  tb_status (*replay)(tb_graph graph, tb_stream stream, tb_error* error);
  tb_status (*info)(tb_graph graph, tb_graph_info* info, tb_error* error);
  /* Replays that are enqueued still run. NULL is accepted. */
  tb_status (*destroy)(tb_graph graph, tb_error* error);
} tb_graph_api;

/* ---- The plugin */

typedef struct tb_api { /* [extensible]; lives as long as the process, as do the tables it points to
                         */
  uint32_t struct_size;
  uint16_t abi_major;
  uint16_t abi_minor;
  const tb_device_api* device;
  const tb_stream_api* stream;
  const tb_event_api* event;
  const tb_memory_api* memory;
  const tb_transfer_api* transfer;
  const tb_operator_api* operators;
  const tb_generator_api* generator;
  const tb_kernel_api* kernel;
  const tb_profiler_api* profiler;
  const tb_capture_api* capture;
  const tb_switch_api* switches;
  const tb_interop_api* interop;
  /* TB_API_SIZE_V1 ends here. */
  const tb_graph_api* graph;
} tb_api;
#define TB_API_SIZE_V1 104u
/* The least sizes of the tables: where they ended at first (rule "tables"). */
#define TB_DEVICE_API_SIZE_V1 40u
#define TB_STREAM_API_SIZE_V1 64u
#define TB_EVENT_API_SIZE_V1 56u
#define TB_MEMORY_API_SIZE_V1 128u
#define TB_TRANSFER_API_SIZE_V1 40u
#define TB_OPERATOR_API_SIZE_V1 48u
#define TB_GENERATOR_API_SIZE_V1 64u
#define TB_KERNEL_API_SIZE_V1 56u
#define TB_PROFILER_API_SIZE_V1 56u
#define TB_CAPTURE_API_SIZE_V1 40u
#define TB_SWITCH_API_SIZE_V1 40u
#define TB_INTEROP_API_SIZE_V1 40u
#define TB_GRAPH_API_SIZE_V1 72u

enum {
  TB_LOG_TRACE = 0,
  TB_LOG_DEBUG = 1,
  TB_LOG_INFO = 2,
  TB_LOG_WARNING = 3,
  TB_LOG_ERROR = 4,
  TB_LOG_OFF = 5
};

/* What a host offers [extensible]. Called from any thread, with no lock of the plugin held. */
typedef struct tb_host_api {
  uint32_t struct_size;
  uint16_t abi_major;
  uint16_t abi_minor;
  void* context;
  /* Receives the plugin's log lines. NULL: the plugin writes to standard error. */
  void (*log)(void* context, int32_t level, const char* component, const char* message);
} tb_host_api;
#define TB_HOST_API_SIZE_V1 24u

/* A host reads this before it runs any code of the plugin [extensible]. */
typedef struct tb_plugin_descriptor_t {
  uint64_t magic; /* TB_PLUGIN_MAGIC */
  uint32_t struct_size;
  uint16_t abi_major;
  uint16_t abi_minor;
  const char* device_type; /* "ocl" */
  const char* name;
  const char* version;
} tb_plugin_descriptor_t;
#define TB_PLUGIN_DESCRIPTOR_SIZE_V1 40u

/* The two exports; a library has no others (in C++, whose templates are exported in spite of hidden
 * visibility, a linker's version script sees to that). get_api touches no driver; a second call
 * gives the same table; TB_E_ABI if `abi_major` is not supported, or the host's table ends before
 * TB_HOST_API_SIZE_V1. `host` may be NULL, and is borrowed as every argument: a backend copies what
 * it keeps. `device_type` is what users write in front of the index ("ocl:0"): of several plugins
 * with one, a host uses the first. */
typedef tb_status (*tb_plugin_get_api_fn)(uint32_t abi_major, const tb_host_api* host,
                                          tb_error* error, const tb_api** api);
#define TB_PLUGIN_DESCRIPTOR_SYMBOL "tb_plugin_descriptor"
#define TB_PLUGIN_GET_API_SYMBOL "tb_plugin_get_api"

#ifdef __cplusplus
}
#endif

/* ---- Tuning, by names of tb_switch_api that any backend may know
 *
 * A choice is an algorithm's id, with sizes where it has some; its time in microseconds is null if
 * it failed, or its results were wrong. D is a device's index.
 * Names that set runs as actions:
 *   start_tuning   counts, and what is reported below, begin anew
 *   tune_problem   with "D NUMBER quick" or "D NUMBER full": measures what is missing of a problem
 *   stop_tuning    from another thread: tune_problem ends early, and keeps what it has measured;
 *                  it does nothing until start_tuning
 *   forget_measurements
 * Subjects that report knows, rows as above:
 *   tuning_problems D      number, family, dtype, quick (bool: tuned even if time is short),
 *                          operations (multiplications and additions), text
 *   tuning_progress        one row: family, shapes (their class), choice, index (its), count (of
 *                          choices), rule_time and best_time (so far; 0: none), classes (measured
 *                          so far), untuned (noted by OCLTENSOR_TUNE=record)
 *   tuned_classes          device (index), family, shapes, rule and best (choices), rule_time,
 *                          best_time, tried (number of choices), wrong (of these), complete (bool)
 *   measurements_file D    no JSON: the path of the file that keeps them
 *   measurements_export D  no JSON: the measurements as a file for other machines */
#endif /* TENSOR_BACKEND_PLUGIN_H */
