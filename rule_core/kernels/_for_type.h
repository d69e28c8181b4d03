/* Loops over elements of one type, compiled for one kind of processor.
 *
 * T            the type of the elements
 * COUNTER      an integer of the same size, so that loops that count vectorize
 * MAGNITUDE    the magnitude of a T
 * COMPARED     the type in which elements are compared with limits
 * IS_FLOAT     1 for floating-point numbers
 * IN(name)     the name of a function for this type and processor
 * FOR_CPU      the attribute that selects the instructions of the processor
 *
 * The loops are plain C that compilers vectorize. They use only operations that IEEE 754 defines to
 * the last bit, in an order that does not depend on the processor.
 */

#define LANE_SUM(NAME, PARAMETERS, TERM)                                                          \
    FOR_CPU static double IN(NAME) PARAMETERS                                                     \
    {                                                                                             \
        double lanes[LANES] = {0};                                                                \
        ptrdiff_t i = 0;                                                                          \
        for (; i + 8 * LANES <= n; i += 8 * LANES)                                                \
            for (ptrdiff_t j = 0; j < LANES; j++) {                                               \
                double a = lanes[j];                                                              \
                a += TERM(i + j);                                                                 \
                a += TERM(i + j + 1 * LANES);                                                     \
                a += TERM(i + j + 2 * LANES);                                                     \
                a += TERM(i + j + 3 * LANES);                                                     \
                a += TERM(i + j + 4 * LANES);                                                     \
                a += TERM(i + j + 5 * LANES);                                                     \
                a += TERM(i + j + 6 * LANES);                                                     \
                a += TERM(i + j + 7 * LANES);                                                     \
                lanes[j] = a;                                                                     \
            }                                                                                     \
        for (; i + LANES <= n; i += LANES)                                                        \
            for (ptrdiff_t j = 0; j < LANES; j++)                                                 \
                lanes[j] += TERM(i + j);                                                          \
        for (ptrdiff_t j = 0; i + j < n; j++)                                                     \
            lanes[j] += TERM(i + j);                                                              \
        for (ptrdiff_t width = LANES / 2; width; width /= 2)                                      \
            for (ptrdiff_t j = 0; j < width; j++)                                                 \
                lanes[j] += lanes[j + width];                                                     \
        return lanes[0] + 0.0; /* no negative zero */                                             \
    }

/* The largest (COMPARE is >) or smallest (<) of n values of type V; NaN is ignored. */
#define LANE_EXTREME(NAME, V, COMPARE, PARAMETERS, FIRST, VALUE)                                  \
    FOR_CPU static V IN(NAME) PARAMETERS                                                          \
    {                                                                                             \
        V lanes[LANES];                                                                           \
        ptrdiff_t i = 0;                                                                          \
        for (ptrdiff_t j = 0; j < LANES; j++)                                                     \
            lanes[j] = FIRST;                                                                     \
        for (; i + LANES <= n; i += LANES)                                                        \
            for (ptrdiff_t j = 0; j < LANES; j++) {                                               \
                V v = VALUE(i + j);                                                               \
                lanes[j] = v COMPARE lanes[j] ? v : lanes[j];                                     \
            }                                                                                     \
        for (ptrdiff_t j = 0; i + j < n; j++) {                                                   \
            V v = VALUE(i + j);                                                                   \
            lanes[j] = v COMPARE lanes[j] ? v : lanes[j];                                         \
        }                                                                                         \
        for (ptrdiff_t width = LANES / 2; width; width /= 2)                                      \
            for (ptrdiff_t j = 0; j < width; j++)                                                 \
                lanes[j] = lanes[j + width] COMPARE lanes[j] ? lanes[j + width] : lanes[j];       \
        return lanes[0];                                                                          \
    }

#define ELEMENT(k) x[k]
#define MAGNITUDE_OF(k) MAGNITUDE(x[k])
#define AS_DOUBLE(k) ((double)x[k])
#define MAGNITUDE_AS_DOUBLE(k) ((double)MAGNITUDE(x[k]))
#define SQUARE_OF(k) square((double)x[k])
#define DEVIATION_OF(k) square((double)x[k] - mean)
#define MAGNITUDE_DEVIATION_OF(k) square((double)MAGNITUDE(x[k]) - mean)
#define CHANGE_OF(k) square((double)x[k] - (double)y[k])

LANE_SUM(sum, (const T *restrict x, ptrdiff_t n), AS_DOUBLE)
LANE_SUM(sum_of_magnitudes, (const T *restrict x, ptrdiff_t n), MAGNITUDE_AS_DOUBLE)
LANE_SUM(sum_of_squares, (const T *restrict x, ptrdiff_t n), SQUARE_OF)
LANE_SUM(deviations, (const T *restrict x, ptrdiff_t n, double mean), DEVIATION_OF)
LANE_SUM(deviations_of_magnitudes, (const T *restrict x, ptrdiff_t n, double mean),
         MAGNITUDE_DEVIATION_OF)
LANE_SUM(change, (const T *restrict x, const T *restrict y, ptrdiff_t n), CHANGE_OF)
LANE_EXTREME(minimum, T, <, (const T *restrict x, ptrdiff_t n), x[0], ELEMENT)
LANE_EXTREME(maximum, T, >, (const T *restrict x, ptrdiff_t n), x[0], ELEMENT)
LANE_EXTREME(minimum_magnitude, T, <, (const T *restrict x, ptrdiff_t n), MAGNITUDE(x[0]),
             MAGNITUDE_OF)
LANE_EXTREME(maximum_magnitude, T, >, (const T *restrict x, ptrdiff_t n), MAGNITUDE(x[0]),
             MAGNITUDE_OF)

#define RATIO_OF(k) tolerance_ratio((double)x[k], (double)y[k], rtol, atol, equal_nan)
LANE_EXTREME(tolerance, double, >,
             (const T *restrict x, const T *restrict y, ptrdiff_t n, double rtol, double atol,
              int equal_nan),
             -INFINITY, RATIO_OF)

FOR_CPU static int64_t IN(count_zeros)(const T *restrict x, ptrdiff_t n)
{
    COUNTER count = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        count += x[i] == 0;
    return (int64_t)count;
}

FOR_CPU static void IN(flag_active)(const T *restrict x, ptrdiff_t n, const operation *op,
                                    uint8_t *restrict flags)
{
#if IS_FLOAT
    const T low = (T)op->first, high = (T)op->second;
#else
    const double low = op->first, high = op->second;
#endif
    if (op->flag)
        for (ptrdiff_t i = 0; i < n; i++)
            flags[i] = (COMPARED)x[i] > low;
    else
        for (ptrdiff_t i = 0; i < n; i++)
            flags[i] = ((COMPARED)x[i] > low) & ((COMPARED)x[i] < high);
}

#if IS_FLOAT
FOR_CPU static int64_t IN(count_nan)(const T *restrict x, ptrdiff_t n)
{
    COUNTER count = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        count += x[i] != x[i];
    return (int64_t)count;
}

FOR_CPU static int64_t IN(count_infinite)(const T *restrict x, ptrdiff_t n)
{
    COUNTER count = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        count += MAGNITUDE(x[i]) == (T)INFINITY;
    return (int64_t)count;
}

FOR_CPU static void IN(flag_nan)(const T *restrict x, ptrdiff_t n, uint8_t *restrict flags)
{
    for (ptrdiff_t i = 0; i < n; i++)
        flags[i] = x[i] != x[i];
}
#endif

/* Pack the active elements, and the NaN elements if there are any; return their number. */
FOR_CPU static int64_t IN(activity)(const T *x, ptrdiff_t n, const operation *op, uint8_t *packed)
{
    uint8_t flags[BLOCK];
    int64_t nan = 0;
    for (ptrdiff_t i = 0; i < n; i += BLOCK) {
        ptrdiff_t size = n - i < BLOCK ? n - i : BLOCK;
        IN(flag_active)(x + i, size, op, flags);
        pack(flags, size, packed + i / 8);
    }
#if IS_FLOAT
    nan = IN(count_nan)(x, n);
    packed += packed_size(n);
    for (ptrdiff_t i = 0; nan && i < n; i += BLOCK) {
        ptrdiff_t size = n - i < BLOCK ? n - i : BLOCK;
        IN(flag_nan)(x + i, size, flags);
        pack(flags, size, packed + i / 8);
    }
#endif
    return nan;
}

FOR_CPU static void IN(extreme)(const T *x, ptrdiff_t n, int code, double *result)
{
    T value = code == MINIMUM             ? IN(minimum)(x, n)
              : code == MAXIMUM           ? IN(maximum)(x, n)
              : code == MINIMUM_MAGNITUDE ? IN(minimum_magnitude)(x, n)
                                          : IN(maximum_magnitude)(x, n);
#if IS_FLOAT
    *result = IN(count_nan)(x, n) ? NAN : (double)value + 0.0; /* no negative zero */
#else
    memcpy(result, &value, sizeof *result);
#endif
}

/* Sums of integers are exact modulo 2^64. */
FOR_CPU static void IN(whole_sum)(const T *restrict x, ptrdiff_t n, int of_magnitudes,
                                  double *result)
{
#if IS_FLOAT
    *result = of_magnitudes ? IN(sum_of_magnitudes)(x, n) : IN(sum)(x, n);
#else
    uint64_t total = 0;
    if (of_magnitudes)
        for (ptrdiff_t i = 0; i < n; i++)
            total += (uint64_t)MAGNITUDE(x[i]);
    else
        for (ptrdiff_t i = 0; i < n; i++)
            total += (uint64_t)x[i];
    memcpy(result, &total, sizeof *result);
#endif
}

/* Compute one operation over n elements, and over as many earlier ones. */
FOR_CPU static void IN(compute)(const operation *op, const void *value, const void *before,
                                ptrdiff_t n, double *result, uint8_t *packed)
{
    const T *x = value, *y = before;
    switch (op->code) {
    case TOTAL:
    case TOTAL_MAGNITUDE:
        IN(whole_sum)(x, n, op->code == TOTAL_MAGNITUDE, result);
        break;
    case SUM:
        result[0] = IN(sum)(x, n);
        break;
    case SUM_MAGNITUDE:
        result[0] = IN(sum_of_magnitudes)(x, n);
        break;
    case SQUARES:
        result[0] = IN(sum_of_squares)(x, n);
        break;
    case MOMENTS:
        result[0] = IN(sum)(x, n) / (double)n;
        result[1] = IN(deviations)(x, n, result[0]);
        break;
    case MOMENTS_MAGNITUDE:
        result[0] = IN(sum_of_magnitudes)(x, n) / (double)n;
        result[1] = IN(deviations_of_magnitudes)(x, n, result[0]);
        break;
    case MINIMUM:
    case MAXIMUM:
    case MINIMUM_MAGNITUDE:
    case MAXIMUM_MAGNITUDE:
        IN(extreme)(x, n, op->code, result);
        break;
    case ZEROS:
        result[0] = (double)IN(count_zeros)(x, n);
        break;
    case NOT_FINITE:
#if IS_FLOAT
        result[0] = (double)IN(count_nan)(x, n);
        result[1] = (double)IN(count_infinite)(x, n);
#endif
        break;
    case TOLERANCE:
#ifdef QUICK_TOLERANCE
        result[0] = QUICK_TOLERANCE(x, y, n, op);
        if (!(fabs(result[0] - 1) > TOO_CLOSE && result[0] <= DBL_MAX))
#endif
            result[0] = IN(tolerance)(x, y, n, op->first, op->second, op->flag);
        break;
    case CHANGE:
        result[0] = IN(change)(x, y, n);
        result[1] = IN(sum_of_squares)(y, n);
        break;
    case ACTIVITY:
        result[0] = (double)IN(activity)(x, n, op, packed);
        break;
    }
}

#undef LANE_SUM
#undef LANE_EXTREME
#undef ELEMENT
#undef MAGNITUDE_OF
#undef AS_DOUBLE
#undef MAGNITUDE_AS_DOUBLE
#undef SQUARE_OF
#undef DEVIATION_OF
#undef MAGNITUDE_DEVIATION_OF
#undef CHANGE_OF
#undef RATIO_OF
