// What kernels for Hopper's matrix units share: tensor maps and copies by the engine (TMA), barriers in
// local memory, and matrix products of a warpgroup (wgmma). Asm behind `//@ ` is uncovered after the first
// compilation (nvidia_hopper/ptx.h): the compiler fills in its operands, and otherwise treats it as a
// comment. PTX ISA 8.0 and later, sections of the instructions named. Register lists are text in asm, so
// accumulators are arrays that are indexed by constants only.
#ifndef OCLTENSOR_HOPPER_H
#define OCLTENSOR_HOPPER_H
#include "ptx.h"
#include "types.h"

// ---- Shared addresses, barriers, copies. A `__local` pointer's low 32 bits are the address that
// instructions take.
#define SHARED(p) ((uint)(size_t)(p))

INLINE void barrier_init(uint bar, uint arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(arrivals) : "memory");
}
INLINE void barrier_expect(uint bar, uint bytes) {
  asm volatile("{.reg .b64 s; mbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], %1;}" ::"r"(bar), "r"(bytes)
               : "memory");
}
INLINE void barrier_arrive(uint bar) {
  asm volatile("{.reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0];}" ::"r"(bar) : "memory");
}
INLINE void barrier_wait(uint bar, uint parity) {
  uint done;
  do {
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(done) : "r"(bar), "r"(parity) : "memory");
  } while (!done);
}
// After stores to local memory that copies or products are to read; before the barrier that tells of them.
INLINE void written_for_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Called by the item that initialised the barriers, before the work-group's barrier().
INLINE void barriers_made() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  written_for_copies();
}
INLINE void copy_tile(uint to, __global const uint *map, int x, int y, int z, uint bar) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
               "{%2, %3, %4}], [%5];"
               ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(z), "r"(bar) : "memory");
}

INLINE void copy_tile_4(uint to, __global const uint *map, int x, int y, int z, int w, uint bar) {
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
               "{%2, %3, %4, %5}], [%6];"
               ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(bar) : "memory");
}
// Copies from an im2col map: consecutive pixels from (x, y) of image z on, in the order and with the steps
// that the map defines, each shifted by (dx, dy); channels from c on.
INLINE void copy_pixels(uint to, __global const uint *map, int c, int x, int y, int z, int dx, int dy,
                        uint bar) {
  asm volatile("{.reg .b16 a, b; cvt.u16.u32 a, %7; cvt.u16.u32 b, %8;\n"
               "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
               "[%1, {%2, %3, %4, %5}], [%6], {a, b};}"
               ::"r"(to), "l"(map), "r"(c), "r"(x), "r"(y), "r"(z), "r"(bar), "r"(dx), "r"(dy) : "memory");
}
// Copies contiguous bytes; their number and both addresses are multiples of 16.
INLINE void copy_line(uint to, __global const void *from, uint bytes, uint bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               ::"r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");
}
// Adds contiguous floats of local memory to others in the order of arrival. Called by one item, whose copies
// they are.
INLINE void add_line(__global float *to, uint from, uint bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;"
               ::"l"(to), "r"(from), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Waits until this item's copies to global memory have read what they write, or are done.
INLINE void copies_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
INLINE void copies_done() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
INLINE void warp_barrier() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
INLINE void store_shared(uint to, uint v) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(v) : "memory");
}
INLINE void store_shared_4(uint to, float x, float y, float z, float w) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};"
               ::"r"(to), "f"(x), "f"(y), "f"(z), "f"(w) : "memory");
}

// ---- Tensor maps: 128 bytes that describe a tensor to the copy engine.
#define MAP_WORDS 32
#define ELEMENT_f16 "0x6"
#define ELEMENT_bf16 "0xa"
#define ELEMENT_tf32 "0xb"
#define REPLACE(field, operands) "//@ tensormap.replace.tile." field " [%0], " operands ";\n"
#define REPLACE32(field, operands) REPLACE(field ".shared::cta.b1024.b32", operands)
#define REPLACE64(field, operands) REPLACE(field ".shared::cta.b1024.b64", operands)

// Makes a map of up to three dimensions: sizes in elements; the first is contiguous, the strides of the
// others are `line` and `bf16_part` bytes, multiples of 16. Copies are boxes of box0 x box1 x 1 with the
// 128-byte swizzle, with zeros outside. Called by all 32 items of a warp; `words` is local memory for one
// map, aligned to 128 bytes, and `map` its place in global memory.
#define MAKE_MAP(ELEMENT, words, map, p, size0, size1, size2, line, bf16_part, box0, box1)                \
  {                                                                                                       \
    (words)[get_local_id(0) & 31] = 0;                                                                    \
    warp_barrier();                                                                                       \
    if ((get_local_id(0) & 31) == 0)                                                                      \
      asm volatile(REPLACE64("global_address", "%1") REPLACE32("rank", "2") REPLACE32("box_dim", "0, %7") \
                   REPLACE32("box_dim", "1, %8") REPLACE32("box_dim", "2, %9")                            \
                   REPLACE32("global_dim", "0, %2") REPLACE32("global_dim", "1, %3")                      \
                   REPLACE32("global_dim", "2, %4") REPLACE64("global_stride", "0, %5")                   \
                   REPLACE64("global_stride", "1, %6") REPLACE32("element_stride", "0, %9")               \
                   REPLACE32("element_stride", "1, %9") REPLACE32("element_stride", "2, %9")              \
                   REPLACE32("elemtype", ELEMENT) REPLACE32("interleave_layout", "0x0")                   \
                   REPLACE32("swizzle_mode", "0x3") REPLACE32("fill_mode", "0x0") "mov.u32 %0, %0;"       \
                   ::"r"(SHARED(words)), "l"((ulong)(p)), "r"((uint)(size0)), "r"((uint)(size1)),         \
                   "r"((uint)(size2)), "l"((ulong)(line)), "l"((ulong)(bf16_part)), "r"((uint)(box0)),    \
                   "r"((uint)(box1)), "r"(1u) : "memory");                                                \
    LEAVE_MAP(words, map)                                                                                 \
  }
// The same in four dimensions: boxes of box0 x box1 x 1 x 1.
#define MAKE_MAP_4(ELEMENT, words, map, p, size0, size1, size2, size3, line, bf16_part, space, box0, box1) \
  {                                                                                                        \
    (words)[get_local_id(0) & 31] = 0;                                                                     \
    warp_barrier();                                                                                        \
    if ((get_local_id(0) & 31) == 0)                                                                       \
      asm volatile(REPLACE64("global_address", "%1") REPLACE32("rank", "3") REPLACE32("box_dim", "0, %9")  \
                   REPLACE32("box_dim", "1, %10") REPLACE32("box_dim", "2, %11")                           \
                   REPLACE32("box_dim", "3, %11") REPLACE32("global_dim", "0, %2")                         \
                   REPLACE32("global_dim", "1, %3") REPLACE32("global_dim", "2, %4")                       \
                   REPLACE32("global_dim", "3, %5") REPLACE64("global_stride", "0, %6")                    \
                   REPLACE64("global_stride", "1, %7") REPLACE64("global_stride", "2, %8")                 \
                   REPLACE32("element_stride", "0, %11") REPLACE32("element_stride", "1, %11")             \
                   REPLACE32("element_stride", "2, %11") REPLACE32("element_stride", "3, %11")             \
                   REPLACE32("elemtype", ELEMENT) REPLACE32("interleave_layout", "0x0")                    \
                   REPLACE32("swizzle_mode", "0x3") REPLACE32("fill_mode", "0x0") "mov.u32 %0, %0;"        \
                   ::"r"(SHARED(words)), "l"((ulong)(p)), "r"((uint)(size0)), "r"((uint)(size1)),          \
                   "r"((uint)(size2)), "r"((uint)(size3)), "l"((ulong)(line)), "l"((ulong)(bf16_part)),    \
                   "l"((ulong)(space)), "r"((uint)(box0)), "r"((uint)(box1)), "r"(1u) : "memory");         \
    LEAVE_MAP(words, map)                                                                                  \
  }
// Makes a map of the words that the host computed (WORDS), all but words 0 and 1, which are the address.
#define PUT_MAP(words, map, p, count, WORDS)                                       \
  {                                                                                \
    const ulong address = (ulong)(p);                                              \
    const uint lane = get_local_id(0) & 31;                                        \
    uint word = lane == 0 ? (uint)address : lane == 1 ? (uint)(address >> 32) : 0; \
    UNROLL for (uint i = 2; i < count; ++i)                                        \
      if (lane == i) word = (WORDS)[i];                                            \
    (words)[lane] = word;                                                          \
    LEAVE_MAP(words, map)                                                          \
  }
#define LEAVE_MAP(words, map)                                                                            \
  warp_barrier();                                                                                        \
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned " \
               "[%0], [%1], 128;"                                                                        \
               ::"l"(map), "r"(SHARED(words)) : "memory");                                               \
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");

// ---- Products. The descriptor of a matrix in local memory with the 128-byte swizzle, for wgmma: `lead` and
// `step` are its leading and stride offsets.
INLINE ulong matrix_at(uint address, uint lead, uint step) {
  return ((ulong)1 << 62) | ((ulong)(step >> 4) << 32) | ((ulong)(lead >> 4) << 16) |
         (ulong)((address & 0x3ffff) >> 4);
}
// A tile that is contiguous along k has rows of 128 bytes, and the next k-step is 32 bytes further. A tile
// that is contiguous across k has blocks of 64 elements x 64 k (8 KiB) with a row for each k, so 16 k are
// 2048 bytes. In units of 16 bytes, as in descriptors.
#define LEAD(along_k) ((along_k) ? 16 : 8192)
#define KSTEP(along_k) ((along_k) ? 2 : 128)

#define NAMES_0_TO_9 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9"
#define TEN_NAMES(t) \
  ", %" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t "8, %" #t "9"
#define NAMES_10_TO_59 TEN_NAMES(1) TEN_NAMES(2) TEN_NAMES(3) TEN_NAMES(4) TEN_NAMES(5)
#define NAMES_16 NAMES_0_TO_9 ", %10, %11, %12, %13, %14, %15"
#define NAMES_32 NAMES_0_TO_9 TEN_NAMES(1) TEN_NAMES(2) ", %30, %31"
#define NAMES_64 NAMES_0_TO_9 NAMES_10_TO_59 ", %60, %61, %62, %63"
#define NAMES_96                                                                                \
  NAMES_0_TO_9 NAMES_10_TO_59 TEN_NAMES(6) TEN_NAMES(7) TEN_NAMES(8) ", %90, %91, %92, %93, %94, %95"
#define NAMES_128                                                                               \
  NAMES_0_TO_9 NAMES_10_TO_59 TEN_NAMES(6) TEN_NAMES(7) TEN_NAMES(8) TEN_NAMES(9) TEN_NAMES(10) \
  TEN_NAMES(11) ", %120, %121, %122, %123, %124, %125, %126, %127"
// n operands d[0 .. n) with constraint c.
#define TIE(c, d, i) c(d[i])
#define TEN_TIES(c, d, t)                                                                               \
  TIE(c, d, t##0), TIE(c, d, t##1), TIE(c, d, t##2), TIE(c, d, t##3), TIE(c, d, t##4), TIE(c, d, t##5), \
      TIE(c, d, t##6), TIE(c, d, t##7), TIE(c, d, t##8), TIE(c, d, t##9)
#define LIST_0_TO_9(c, d)                                                                           \
  TIE(c, d, 0), TIE(c, d, 1), TIE(c, d, 2), TIE(c, d, 3), TIE(c, d, 4), TIE(c, d, 5), TIE(c, d, 6), \
      TIE(c, d, 7), TIE(c, d, 8), TIE(c, d, 9)
#define LIST_0_TO_59(c, d)                                                                       \
  LIST_0_TO_9(c, d), TEN_TIES(c, d, 1), TEN_TIES(c, d, 2), TEN_TIES(c, d, 3), TEN_TIES(c, d, 4), \
      TEN_TIES(c, d, 5)
#define LIST_16(c, d)                                                                           \
  LIST_0_TO_9(c, d), TIE(c, d, 10), TIE(c, d, 11), TIE(c, d, 12), TIE(c, d, 13), TIE(c, d, 14), \
      TIE(c, d, 15)
#define LIST_32(c, d) LIST_0_TO_9(c, d), TEN_TIES(c, d, 1), TEN_TIES(c, d, 2), TIE(c, d, 30), TIE(c, d, 31)
#define LIST_64(c, d) LIST_0_TO_59(c, d), TIE(c, d, 60), TIE(c, d, 61), TIE(c, d, 62), TIE(c, d, 63)
#define LIST_96(c, d)                                                                             \
  LIST_0_TO_59(c, d), TEN_TIES(c, d, 6), TEN_TIES(c, d, 7), TEN_TIES(c, d, 8), TIE(c, d, 90),     \
      TIE(c, d, 91), TIE(c, d, 92), TIE(c, d, 93), TIE(c, d, 94), TIE(c, d, 95)
#define LIST_128(c, d)                                                                            \
  LIST_0_TO_59(c, d), TEN_TIES(c, d, 6), TEN_TIES(c, d, 7), TEN_TIES(c, d, 8), TEN_TIES(c, d, 9), \
      TEN_TIES(c, d, 10), TEN_TIES(c, d, 11), TIE(c, d, 120), TIE(c, d, 121), TIE(c, d, 122),     \
      TIE(c, d, 123), TIE(c, d, 124), TIE(c, d, 125), TIE(c, d, 126), TIE(c, d, 127)
#define TIES_16(d) LIST_16("+f", d)
#define TIES_32(d) LIST_32("+f", d)
#define TIES_64(d) LIST_64("+f", d)
#define TIES_96(d) LIST_96("+f", d)
#define TIES_128(d) LIST_128("+f", d)

// The operands after n accumulators: %n, %n+1 the matrices, %n+2 whether to add to the accumulators or to
// replace them.
#define OPERAND_16_0 "%16"
#define OPERAND_16_1 "%17"
#define OPERAND_32_0 "%32"
#define OPERAND_32_1 "%33"
#define OPERAND_32_2 "%34"
#define OPERAND_64_0 "%64"
#define OPERAND_64_1 "%65"
#define OPERAND_64_2 "%66"
#define OPERAND_96_0 "%96"
#define OPERAND_96_1 "%97"
#define OPERAND_96_2 "%98"
#define OPERAND_128_0 "%128"
#define OPERAND_128_1 "%129"
#define OPERAND_128_2 "%130"

// d (n / 2 floats an item) = or += the product of 64 rows at da with n columns at db. `SHAPE` is "m64nNk16"
// and so on, `TYPES` "f32.bf16.bf16", `TAIL` what follows the predicate: "p, 1, 1, transposed a, transposed
// b", or "p, 1, 1".
#define PRODUCT_OF(ACCUMULATORS, SHAPE, TYPES, TAIL, d, da, db, add)                                     \
  asm volatile("{\n//@ .reg .pred p;\n//@ setp.ne.b32 p, " CAT(CAT(OPERAND_, ACCUMULATORS), _2) ", 0;\n" \
               "//@ wgmma.mma_async.sync.aligned." SHAPE "." TYPES " {" CAT(NAMES_, ACCUMULATORS) "}, "  \
               CAT(CAT(OPERAND_, ACCUMULATORS), _0) ", " CAT(CAT(OPERAND_, ACCUMULATORS), _1) ", "       \
               TAIL ";\n}"                                                                               \
               : CAT(TIES_, ACCUMULATORS)(d) : "l"(da), "l"(db), "r"(add) : "memory")
#define PRODUCTS_BEGIN asm volatile("//@ wgmma.fence.sync.aligned;\n" ::: "memory")
#define PRODUCTS_END asm volatile("//@ wgmma.commit_group.sync.aligned;\n" ::: "memory")
#define ALL_BUT_ONE_DONE asm volatile("//@ wgmma.wait_group.sync.aligned 1;\n" ::: "memory")
// Waits for all products. Also tells the compiler that the accumulators change here.
#define ALL_DONE(ACCUMULATORS, d) \
  asm volatile("//@ wgmma.wait_group.sync.aligned 0;\n" : CAT(TIES_, ACCUMULATORS)(d)::"memory")

// Several k-steps of 16 in one statement, so that the compiler puts nothing between them: asm text that
// consists of PRODUCT_TEMPORARIES, steps, and PRODUCT_END_TEXT. Offsets in units of 16 bytes as text; `ADD`
// is "zero" to replace the accumulators, "one" to add.
#define PRODUCT_TEMPORARIES                                   \
  "{\n//@ .reg .pred zero, one;\n//@ .reg .b64 a_at, b_at;\n" \
  "//@ setp.ne.b32 zero, 0, 0;\n//@ setp.eq.b32 one, 0, 0;\n" \
  "//@ wgmma.fence.sync.aligned;\n"
#define PRODUCT_END_TEXT "//@ wgmma.commit_group.sync.aligned;\n}"
// Both matrices in local memory: operands after the accumulators as above.
#define PRODUCT_STEP(ACCUMULATORS, SHAPE, TYPES, a_offset, b_offset, ADD, TURNS)                       \
  "//@ add.s64 a_at, " CAT(CAT(OPERAND_, ACCUMULATORS), _0) ", " a_offset ";\n"                        \
  "//@ add.s64 b_at, " CAT(CAT(OPERAND_, ACCUMULATORS), _1) ", " b_offset ";\n"                        \
  "//@ wgmma.mma_async.sync.aligned." SHAPE "." TYPES " {" CAT(NAMES_, ACCUMULATORS) "}, a_at, b_at, " \
  ADD ", 1, 1, " TURNS ";\n"
// The left matrix in registers: 4 words of pairs for each step, after the accumulators; `b` is the operand
// after those. Accumulators 8 j .. 8 j + 7 of another product, packed in pairs, are step j.
#define PRODUCT_STEP_OF_REGISTERS(ACCUMULATORS, SHAPE, TYPES, k, b, b_offset, TURN_B)      \
  "//@ add.s64 b_at, " b ", " b_offset ";\n"                                               \
  "//@ wgmma.mma_async.sync.aligned." SHAPE "." TYPES " {" CAT(NAMES_, ACCUMULATORS) "}, " \
  CAT(CAT(FOUR_, ACCUMULATORS), _##k) ", b_at, one, 1, 1, " TURN_B ";\n"
#define FOUR_32_0 "{%32, %33, %34, %35}"
#define FOUR_32_1 "{%36, %37, %38, %39}"
#define FOUR_32_2 "{%40, %41, %42, %43}"
#define FOUR_32_3 "{%44, %45, %46, %47}"
#define FOUR_32_4 "{%48, %49, %50, %51}"
#define FOUR_32_5 "{%52, %53, %54, %55}"
#define FOUR_32_6 "{%56, %57, %58, %59}"
#define FOUR_32_7 "{%60, %61, %62, %63}"
#define FOUR_64_0 "{%64, %65, %66, %67}"
#define FOUR_64_1 "{%68, %69, %70, %71}"
#define FOUR_64_2 "{%72, %73, %74, %75}"
#define FOUR_64_3 "{%76, %77, %78, %79}"
#define FOUR_64_4 "{%80, %81, %82, %83}"
#define FOUR_64_5 "{%84, %85, %86, %87}"
#define FOUR_64_6 "{%88, %89, %90, %91}"
#define FOUR_64_7 "{%92, %93, %94, %95}"
#define ALL_BUT_ONE_DONE_OF(ACCUMULATORS, d) \
  asm volatile("//@ wgmma.wait_group.sync.aligned 1;\n" : CAT(TIES_, ACCUMULATORS)(d)::"memory")

// ---- Results
#define PACK_FUNCTION(name, instruction)                             \
  INLINE uint name(float low, float high) {                          \
    uint r;                                                          \
    asm(instruction " %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low)); \
    return r;                                                        \
  }
PACK_FUNCTION(pack_f16, "cvt.rn.f16x2.f32")
PACK_FUNCTION(pack_bf16, "cvt.rn.bf16x2.f32")
// The same, with 0 instead of negative numbers.
PACK_FUNCTION(pack_positive_f16, "cvt.rn.relu.f16x2.f32")
PACK_FUNCTION(pack_positive_bf16, "cvt.rn.relu.bf16x2.f32")
INLINE uint from_neighbour(uint v, uint mask) {
  uint r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r) : "r"(v), "r"(mask));
  return r;
}
INLINE float from_neighbour_float(float v, uint mask) { return as_float(from_neighbour(as_uint(v), mask)); }
#define EXCHANGE(tiles, v, across) from_neighbour(v, across)
#include "fragment_exchange.h"
#endif
