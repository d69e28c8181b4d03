/* All loops for one kind of processor.
 *
 * CPU(name)    the name of a function for this processor
 * FOR_CPU      the attribute that selects its instructions
 */

#define WIDEN(NAME, FROM, TO)                                                                     \
    FOR_CPU static void CPU(NAME)(const void *restrict from, void *restrict to, ptrdiff_t n)      \
    {                                                                                             \
        const FROM *narrow = from;                                                                \
        TO *wide = to;                                                                            \
        for (ptrdiff_t i = 0; i < n; i++)                                                         \
            wide[i] = narrow[i];                                                                  \
    }

WIDEN(widen_int8, int8_t, int64_t)
WIDEN(widen_int16, int16_t, int64_t)
WIDEN(widen_int32, int32_t, int64_t)
WIDEN(widen_uint8, uint8_t, uint64_t)
WIDEN(widen_uint16, uint16_t, uint64_t)
WIDEN(widen_uint32, uint32_t, uint64_t)

FOR_CPU static void CPU(widen_bfloat16)(const void *restrict from, void *restrict to, ptrdiff_t n)
{
    const uint16_t *narrow = from;
    uint32_t *wide = to; /* the bits of float32 */
    for (ptrdiff_t i = 0; i < n; i++)
        wide[i] = (uint32_t)narrow[i] << 16;
}

FOR_CPU static void CPU(widen_float16)(const void *restrict from, void *restrict to, ptrdiff_t n)
{
    const uint16_t *narrow = from;
    float *wide = to;
    for (ptrdiff_t i = 0; i < n; i++) {
        uint32_t magnitude = narrow[i] & 0x7fffu, bits = magnitude << 13;
        float value;
        memcpy(&value, &bits, sizeof value);
        value *= 0x1p112f; /* the difference of the exponents' biases; exact, also for denormals */
        memcpy(&bits, &value, sizeof bits);
        bits |= magnitude >= 0x7c00u ? 0x7f800000u : 0;
        bits |= (uint32_t)(narrow[i] & 0x8000u) << 16;
        memcpy(&wide[i], &bits, sizeof bits);
    }
}

#undef WIDEN

/* The largest ratio in single precision where that suffices, and else NaN. */
#define QUICK_RATIO(k) (fabsf(x[k] - y[k]) / (fabsf(x[k]) * rtol + atol))
FOR_CPU static double CPU(quick_tolerance)(const float *restrict x, const float *restrict y,
                                           ptrdiff_t n, const operation *op)
{
    const float rtol = (float)op->first, atol = (float)op->second;
    float lanes[LANES];
    int32_t broken = 0;
    ptrdiff_t i = 0;
    if (!op->quick)
        return NAN;
    for (ptrdiff_t j = 0; j < LANES; j++)
        lanes[j] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (ptrdiff_t j = 0; j < LANES; j++) {
            float ratio = QUICK_RATIO(i + j);
            lanes[j] = ratio > lanes[j] ? ratio : lanes[j];
            broken += !(ratio <= FLT_MAX);
        }
    for (ptrdiff_t j = 0; i + j < n; j++) {
        float ratio = QUICK_RATIO(i + j);
        lanes[j] = ratio > lanes[j] ? ratio : lanes[j];
        broken += !(ratio <= FLT_MAX);
    }
    for (ptrdiff_t width = LANES / 2; width; width /= 2)
        for (ptrdiff_t j = 0; j < width; j++)
            lanes[j] = lanes[j + width] > lanes[j] ? lanes[j + width] : lanes[j];
    return broken ? NAN : (double)lanes[0];
}
#undef QUICK_RATIO

#define T float
#define COMPARED float
#define COUNTER int32_t
#define MAGNITUDE fabsf
#define IS_FLOAT 1
#define IN(name) CPU(name##_float)
#define QUICK_TOLERANCE CPU(quick_tolerance)
#include "_for_type.h"
#undef QUICK_TOLERANCE
#undef T
#undef COMPARED
#undef COUNTER
#undef MAGNITUDE
#undef IN

#define T double
#define COMPARED double
#define COUNTER int64_t
#define MAGNITUDE fabs
#define IN(name) CPU(name##_double)
#include "_for_type.h"
#undef T
#undef MAGNITUDE
#undef IS_FLOAT
#undef IN

#define T int64_t
#define MAGNITUDE magnitude
#define IS_FLOAT 0
#define IN(name) CPU(name##_int64)
#include "_for_type.h"
#undef T
#undef MAGNITUDE
#undef IN

#define T uint64_t
#define MAGNITUDE(x) (x)
#define IN(name) CPU(name##_uint64)
#include "_for_type.h"
#undef T
#undef COMPARED
#undef COUNTER
#undef MAGNITUDE
#undef IS_FLOAT
#undef IN

static const processor CPU(loops) = {
    {CPU(compute_float), CPU(compute_double), CPU(compute_int64), CPU(compute_uint64)},
    {
        CPU(widen_float16),
        CPU(widen_bfloat16),
        NULL,
        NULL,
        CPU(widen_int8),
        CPU(widen_int16),
        CPU(widen_int32),
        NULL,
        CPU(widen_uint8),
        CPU(widen_uint16),
        CPU(widen_uint32),
        NULL,
    },
};
