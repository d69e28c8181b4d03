/* Statistics of tensors, computed as pieces of files are read, without the interpreter's lock.
 *
 * `rule_core/kernels/__init__.py` describes the operations and computes the same with numpy, to the
 * last bit. A sum has LANES partial sums in double precision: element k is added to number
 * k % LANES, in ascending order, and then the second half of the sums is added to the first until
 * one remains. The result therefore depends neither on the processor nor on the number of threads.
 *
 * Built with -ffp-contract=off: a fused multiplication and addition would round once, not twice.
 */

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#define _GNU_SOURCE
#include <Python.h>

#include <errno.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__ /* in scripts/test_sanitizers */
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(start, size) ((void)(start), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(start, size) ((void)(start), (void)(size))
#endif

#define LANES 256
#define BLOCK 4096 /* elements whose flags are packed together */
#define TOO_CLOSE 1e-4
#define ALIGNMENT 64
#define MAX_VALUES 16 /* of a piece: the value itself, and earlier ones */
#define MAX_THREADS 64
#define TRUNCATED (-1)
#define SOURCE_STEP 65536

/* The operations; `Code` in __init__.py has the same numbers. */
enum {
    TOTAL,
    TOTAL_MAGNITUDE,
    SUM,
    SUM_MAGNITUDE,
    SQUARES,
    MOMENTS,
    MOMENTS_MAGNITUDE,
    MINIMUM,
    MAXIMUM,
    MINIMUM_MAGNITUDE,
    MAXIMUM_MAGNITUDE,
    ZEROS,
    NOT_FINITE,
    TOLERANCE,
    CHANGE,
    ACTIVITY,
    OPERATIONS
};

/* The types of elements; `TYPES` in __init__.py has the same order. */
enum {
    FLOAT16,
    BFLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    TYPES
};

typedef struct {
    int code;
    int back; /* which value of the piece the operation compares with; 0 means none */
    int flag;
    int quick; /* whether single precision may suffice */
    double first, second;
} operation;

typedef void compute(const operation *, const void *, const void *, ptrdiff_t, double *, uint8_t *);
typedef void widen(const void *restrict, void *restrict, ptrdiff_t);

typedef struct {
    compute *compute[4]; /* for float, double, int64 and uint64 */
    widen *widen[TYPES]; /* NULL if the elements are of one of these */
} processor;

static const int SIZES[TYPES] = {2, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8};
static const int COMPUTED_AS[TYPES] = {0, 0, 0, 1, 2, 2, 2, 2, 3, 3, 3, 3};
static const int COMPUTED_SIZES[4] = {4, 8, 8, 8};

static inline double square(double x) { return x * x; }

static inline int64_t magnitude(int64_t x)
{
    return x < 0 ? (int64_t)(0 - (uint64_t)x) : x; /* the smallest integer is its own */
}

/* The difference of a value and an earlier one, in units of the tolerance. */
static inline double tolerance_ratio(double value, double before, double rtol, double atol,
                                     int equal_nan)
{
    double ratio = fabs(value - before) / (fabs(value) * rtol + atol);
    int both_nan = equal_nan & (value != value) & (before != before);
    ratio = ratio <= DBL_MAX ? ratio : INFINITY;
    return (value == before) | both_nan ? 0.0 : ratio;
}

static inline ptrdiff_t packed_size(ptrdiff_t n) { return (n + 7) / 8; }

/* Pack flags of one byte into bits, the first one into the highest, as numpy.packbits does. */
static inline void pack(uint8_t *flags, ptrdiff_t n, uint8_t *packed)
{
    while (n % 8)
        flags[n++] = 0; /* a block has room */
    for (ptrdiff_t i = 0; i < n; i += 8) {
        uint64_t eight;
        memcpy(&eight, flags + i, sizeof eight);
        packed[i / 8] = (uint8_t)((eight * 0x8040201008040201u) >> 56);
    }
}

#define CPU(name) name##_baseline
#define FOR_CPU
#include "_for_processor.h"
#undef CPU
#undef FOR_CPU

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_X86 1
#include <cpuid.h>

#define CPU(name) name##_avx2
#define FOR_CPU __attribute__((target("avx2")))
#include "_for_processor.h"
#undef CPU
#undef FOR_CPU

#define CPU(name) name##_avx512
#define FOR_CPU __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#include "_for_processor.h"
#undef CPU
#undef FOR_CPU

/* Return 2 with AVX-512, 1 with AVX2 and 0 without, as processor and system support it. */
static int x86_level(void)
{
    unsigned eax, ebx, ecx, edx, state, high;
    const unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; /* F, DQ, BW, VL */
    if (!__get_cpuid_count(1, 0, &eax, &ebx, &ecx, &edx) || !(ecx & 1u << 27)) /* OSXSAVE */
        return 0;
    __asm__("xgetbv" : "=a"(state), "=d"(high) : "c"(0));
    if ((state & 0x6) != 0x6 || !(ecx & 1u << 28) ||
        !__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !(ebx & 1u << 5))
        return 0;
    return (state & 0xe6) == 0xe6 && (ebx & avx512) == avx512 ? 2 : 1;
}
#endif

static const struct {
    const char *name;
    const processor *loops;
} PROCESSORS[] = {
    {"baseline", &loops_baseline},
#ifdef HAS_X86
    {"avx2", &loops_avx2},
    {"avx512", &loops_avx512},
#endif
};

static int supported(void)
{
#ifdef HAS_X86
    return x86_level();
#else
    return 0;
#endif
}

static int selected; /* the index in PROCESSORS; changed by `use` only */

/* A row of the table of reads: where the bytes of a value are. */
typedef struct {
    int64_t source; /* the index of a file, or -1 - the index of a buffer in memory */
    int64_t start;  /* the offset of the head in it */
    int64_t head, size, tail; /* bytes before the elements, of them, and after them */
    int64_t frame; /* where the head and then the tail go among the frames */
} read_row;

/* A row of the table of pieces. */
typedef struct {
    int64_t type, size;       /* the type and number of the elements */
    int64_t read, reads;      /* the first of its reads, and how many */
    int64_t operation, operations;
    int64_t result;           /* the first of its results, two for each operation */
    int64_t packed;           /* where its packed flags go */
    int64_t status; /* 0, TRUNCATED, or an error + SOURCE_STEP * its file; written here */
} piece_row;

/* A row of the table of operations. */
typedef struct {
    double code, back, flag, quick, first, second;
} operation_row;

#define BUFFERS 8

/* Pieces to read and measure, and the objects that their tables are in. */
typedef struct {
    const processor *loops;
    piece_row *pieces;
    const read_row *reads;
    const operation_row *operations;
    const int *files;
    uint8_t *memory, *frames, *packed;
    double *results;
    ptrdiff_t count, room; /* the number of pieces, and the bytes of memory of a thread */
    ptrdiff_t next; /* the piece that is next; shared by the threads */
    int threads;    /* how many threads have memory */
    int buffer_count, source_count;
    Py_buffer buffers[BUFFERS], sources[MAX_VALUES];
} job;

typedef struct run run;

typedef struct {
    run *run;
    int number; /* 0 is the thread that calls `finish` */
} worker;

/* Jobs that threads work on, one after the other, since `start` and until `finish`. */
struct run {
    job *jobs;
    ptrdiff_t count;
    pid_t process; /* a forked process does not have the threads */
    int is_finished;
    int started; /* the number of other threads */
    pthread_t others[MAX_THREADS];
    worker workers[MAX_THREADS];
};

static ptrdiff_t aligned(ptrdiff_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

/* Fill the buffers from a file; return 0, TRUNCATED, or the number of an error. */
static int read_fully(int file, struct iovec *parts, int count, off_t start)
{
    while (count) {
        ssize_t done = preadv(file, parts, count, start);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done ? errno : TRUNCATED;
        start += done;
        while (count && (size_t)done >= parts->iov_len) {
            done -= (ssize_t)parts->iov_len;
            parts++;
            count--;
        }
        if (count) {
            parts->iov_base = (uint8_t *)parts->iov_base + done;
            parts->iov_len -= (size_t)done;
        }
    }
    return 0;
}

/* Read a value into memory; return 0, TRUNCATED, or the number of an error. */
static int read_value(const job *job, const read_row *row, uint8_t *content)
{
    struct iovec parts[3] = {
        {job->frames + row->frame, (size_t)row->head},
        {content, (size_t)row->size},
        {job->frames + row->frame + row->head, (size_t)row->tail},
    };
    int first = row->head ? 0 : 1, last = row->tail ? 3 : 2;
    return read_fully(job->files[row->source], parts + first, last - first, (off_t)row->start);
}

static int is_misaligned(const uint8_t *value, int64_t type)
{
    return (uintptr_t)value % (uintptr_t)SIZES[type] != 0;
}

static const uint8_t *in_memory(const job *job, const read_row *row)
{
    return (const uint8_t *)job->sources[-1 - row->source].buf + row->start;
}

/* Take memory from a thread's; AddressSanitizer reports access to what is not taken. */
static uint8_t *take(uint8_t **memory, ptrdiff_t size)
{
    uint8_t *taken = *memory;
    *memory += aligned(size);
    ASAN_UNPOISON_MEMORY_REGION(taken, (size_t)size);
    return taken;
}

static int64_t sweep_piece(const job *job, const piece_row *piece, uint8_t *memory)
{
    const void *values[MAX_VALUES];
    int kind = COMPUTED_AS[piece->type];
    widen *convert = job->loops->widen[piece->type];
    uint8_t *packed = job->packed + piece->packed;
    for (int64_t i = 0; i < piece->reads; i++) {
        const read_row *row = job->reads + piece->read + i;
        const void *value;
        if (row->source < 0) {
            value = in_memory(job, row);
            if (is_misaligned(value, piece->type))
                value = memcpy(take(&memory, row->size), value, (size_t)row->size);
        } else {
            uint8_t *content = take(&memory, row->size);
            int status = read_value(job, row, content);
            if (status)
                return status > 0 ? status + SOURCE_STEP * row->source : status;
            value = content;
        }
        values[i] = value;
        if (convert) {
            uint8_t *wide = take(&memory, piece->size * COMPUTED_SIZES[kind]);
            convert(value, wide, piece->size);
            values[i] = wide;
        }
    }
    for (int64_t i = 0; i < piece->operations; i++) {
        const operation_row *row = job->operations + piece->operation + i;
        operation op = {(int)row->code,  (int)row->back, (int)row->flag,
                        (int)row->quick, row->first,     row->second};
        job->loops->compute[kind](&op, values[0], values[op.back], piece->size,
                                  job->results + piece->result + 2 * i, packed);
        if (op.code == ACTIVITY)
            packed += 2 * packed_size(piece->size);
    }
    return 0;
}

static void *work(void *argument)
{
    const worker *worker = argument;
    for (ptrdiff_t i = 0; i < worker->run->count; i++) {
        job *job = worker->run->jobs + i;
        if (worker->number >= job->threads)
            continue;
        uint8_t *memory = job->memory + worker->number * job->room;
        for (;;) {
            ptrdiff_t index = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
            if (index >= job->count)
                break;
            ASAN_POISON_MEMORY_REGION(memory, (size_t)job->room);
            job->pieces[index].status = sweep_piece(job, job->pieces + index, memory);
        }
    }
    return NULL;
}

/* Let other threads, which take no signals, begin as far as they start. */
static void start_threads(run *run)
{
    int threads = 1;
    sigset_t all, before;
    for (ptrdiff_t i = 0; i < run->count; i++)
        threads = run->jobs[i].threads > threads ? run->jobs[i].threads : threads;
    run->process = getpid();
    for (int i = 0; i < threads; i++)
        run->workers[i] = (worker){run, i};
    if (threads > 1) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        while (run->started < threads - 1 &&
               !pthread_create(&run->others[run->started], NULL, work,
                               &run->workers[run->started + 1]))
            run->started++;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
}

/* Wait for the other threads, whose pieces this one shares if `is_wanted`. */
static void end_threads(run *run, int is_wanted)
{
    int is_forked = run->process != getpid();
    if (is_forked || !is_wanted)
        for (ptrdiff_t i = 0; i < run->count; i++)
            __atomic_store_n(&run->jobs[i].next, is_wanted ? 0 : run->jobs[i].count,
                             __ATOMIC_RELAXED);
    if (is_wanted)
        work(&run->workers[0]);
    for (int i = 0; i < run->started && !is_forked; i++)
        pthread_join(run->others[i], NULL);
    run->started = 0;
}

static int within(int64_t start, int64_t size, int64_t limit)
{
    return start >= 0 && size >= 0 && start <= limit && size <= limit - start;
}

/* The lengths of the buffers of a job. */
typedef struct {
    int64_t reads, operations, files, sources, frames, results, packed, room;
} limits;

static int is_valid_piece(const job *job, const piece_row *piece, const limits *limit)
{
    int64_t needed = 0, flags = 0;
    if (piece->type < 0 || piece->type >= TYPES || piece->size < 0 || piece->size >= 1 << 30 ||
        piece->reads < 1 || piece->reads > MAX_VALUES ||
        !within(piece->read, piece->reads, limit->reads) || piece->operations > 1 << 20 ||
        !within(piece->operation, piece->operations, limit->operations) ||
        !within(piece->result, 2 * piece->operations, limit->results))
        return 0;
    for (int64_t i = 0; i < piece->reads; i++) {
        const read_row *row = job->reads + piece->read + i;
        if (row->size != piece->size * SIZES[piece->type] || row->source >= limit->files ||
            row->source < -limit->sources)
            return 0;
        if (row->source < 0) {
            if (row->head || row->tail ||
                !within(row->start, row->size, job->sources[-1 - row->source].len))
                return 0;
        } else if (row->start < 0 || row->head < 0 || row->tail < 0 || row->head > 1 << 30 ||
                   row->tail > 1 << 30 ||
                   !within(row->frame, row->head + row->tail, limit->frames))
            return 0;
        if (row->source >= 0 || is_misaligned(in_memory(job, row), piece->type))
            needed += aligned(row->size);
        if (job->loops->widen[piece->type])
            needed += aligned(piece->size * COMPUTED_SIZES[COMPUTED_AS[piece->type]]);
    }
    for (int64_t i = 0; i < piece->operations; i++) {
        const operation_row *row = job->operations + piece->operation + i;
        if (!(row->code >= 0 && row->code < OPERATIONS && row->back >= 0 &&
              row->back < (double)piece->reads))
            return 0;
        flags += row->code == ACTIVITY ? 2 * packed_size(piece->size) : 0;
    }
    return needed <= limit->room && within(piece->packed, flags, limit->packed);
}

static const char START_DOC[] =
    "start(jobs, /)\n"
    "--\n\n"
    "Begin to read and measure the pieces of jobs in other threads, and return a run to finish.\n\n"
    "A job is a tuple: pieces, reads, operations, files, sources, memory, frames, results, packed,\n"
    "threads. The tables have the rows of piece_row, read_row and operation_row in _sweep.c; see\n"
    "Sweep.prepare in rule_core/kernels/sweep.py for the rest. The thread that finishes\n"
    "the run counts as one: with one thread, nothing begins before.";

static const char RUN[] = "rule_core.kernels._sweep.run";

/* Take a job from a tuple; return whether its pieces fit its buffers. */
static int take_job(job *job, PyObject *arguments)
{
    PyObject *objects;
    Py_buffer *buffer = job->buffers;
    if (!PyArg_ParseTuple(arguments, "w*y*y*y*O!w*w*w*w*i:job", &buffer[0], &buffer[1], &buffer[2],
                          &buffer[3], &PyTuple_Type, &objects, &buffer[4], &buffer[5], &buffer[6],
                          &buffer[7], &job->threads))
        return 0;
    job->buffer_count = BUFFERS;
    Py_ssize_t wanted = PyTuple_Size(objects);
    if (wanted > MAX_VALUES) {
        PyErr_SetString(PyExc_ValueError, "too many sources");
        return 0;
    }
    for (; job->source_count < wanted; job->source_count++)
        if (PyObject_GetBuffer(PyTuple_GetItem(objects, job->source_count),
                               &job->sources[job->source_count], PyBUF_SIMPLE))
            return 0;
    job->loops = PROCESSORS[selected].loops;
    job->pieces = buffer[0].buf;
    job->reads = buffer[1].buf;
    job->operations = buffer[2].buf;
    job->files = buffer[3].buf;
    job->memory = buffer[4].buf;
    job->frames = buffer[5].buf;
    job->results = buffer[6].buf;
    job->packed = buffer[7].buf;
    job->count = buffer[0].len / (Py_ssize_t)sizeof(piece_row);
    job->threads = job->threads < 1 ? 1 : job->threads > MAX_THREADS ? MAX_THREADS : job->threads;
    job->room = buffer[4].len / job->threads / ALIGNMENT * ALIGNMENT;
    if (job->threads > job->count)
        job->threads = job->count ? (int)job->count : 1;
    limits limit = {
        buffer[1].len / (Py_ssize_t)sizeof(read_row),
        buffer[2].len / (Py_ssize_t)sizeof(operation_row),
        buffer[3].len / (Py_ssize_t)sizeof(int),
        job->source_count,
        buffer[5].len,
        buffer[6].len / (Py_ssize_t)sizeof(double),
        buffer[7].len,
        job->room,
    };
    for (ptrdiff_t i = 0; i < job->count; i++)
        if (!is_valid_piece(job, job->pieces + i, &limit)) {
            PyErr_Format(PyExc_ValueError, "piece %zd does not fit its buffers", i);
            return 0;
        }
    return 1;
}

/* End a run, and release what its jobs hold. */
static void release_run(run *run)
{
    Py_BEGIN_ALLOW_THREADS
    end_threads(run, 0);
    Py_END_ALLOW_THREADS
    for (ptrdiff_t i = 0; i < run->count; i++) {
        job *job = run->jobs + i;
        ASAN_UNPOISON_MEMORY_REGION(job->memory, (size_t)(job->threads * job->room));
        while (job->source_count)
            PyBuffer_Release(&job->sources[--job->source_count]);
        while (job->buffer_count)
            PyBuffer_Release(&job->buffers[--job->buffer_count]);
    }
    PyMem_Free(run->jobs);
    PyMem_Free(run);
}

static void release_capsule(PyObject *capsule) { release_run(PyCapsule_GetPointer(capsule, RUN)); }

static PyObject *start_run(PyObject *module, PyObject *jobs)
{
    (void)module;
    Py_ssize_t count = PyTuple_Size(jobs);
    if (count < 0)
        return NULL;
    run *run = PyMem_Calloc(1, sizeof *run);
    job *all = PyMem_Calloc((size_t)count, sizeof *all);
    if (!run || !all) {
        PyMem_Free(run);
        PyMem_Free(all);
        return PyErr_NoMemory();
    }
    run->jobs = all;
    run->count = count;
    int fits = 1;
    for (Py_ssize_t i = 0; i < count && fits; i++)
        fits = take_job(all + i, PyTuple_GetItem(jobs, i));
    PyObject *capsule = fits ? PyCapsule_New(run, RUN, release_capsule) : NULL;
    if (capsule)
        start_threads(run);
    else
        release_run(run);
    return capsule;
}

static PyObject *finish_run(PyObject *module, PyObject *capsule)
{
    (void)module;
    run *run = PyCapsule_GetPointer(capsule, RUN);
    if (!run)
        return NULL;
    if (run->is_finished) {
        PyErr_SetString(PyExc_ValueError, "the run is finished");
        return NULL;
    }
    run->is_finished = 1;
    Py_BEGIN_ALLOW_THREADS
    end_threads(run, 1);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *processors(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *names = PyList_New(0);
    for (int i = 0; names && i <= supported(); i++) {
        PyObject *name = PyUnicode_FromString(PROCESSORS[i].name);
        if (!name || PyList_Append(names, name))
            Py_CLEAR(names);
        Py_XDECREF(name);
    }
    return names;
}

static PyObject *use(PyObject *module, PyObject *argument)
{
    (void)module;
    for (int i = 0; i <= supported(); i++)
        if (PyUnicode_Check(argument) &&
            !PyUnicode_CompareWithASCIIString(argument, PROCESSORS[i].name)) {
            selected = i;
            Py_RETURN_NONE;
        }
    PyErr_Format(PyExc_ValueError, "%R is not among processors()", argument);
    return NULL;
}

static PyMethodDef METHODS[] = {
    {"start", start_run, METH_O, START_DOC},
    {"finish", finish_run, METH_O,
     "finish(run, /)\n--\n\nShare the pieces of a run that are left, and wait for all of them."},
    {"processors", processors, METH_NOARGS,
     "processors()\n--\n\nReturn the kinds of processors that this one can run, the best last."},
    {"use", use, METH_O,
     "use(name, /)\n--\n\nUse the instructions of a kind of processor, for tests."},
    {NULL, NULL, 0, NULL},
};

static int start(PyObject *module)
{
    (void)module;
    selected = supported(); /* the best */
    return 0;
}

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, start}, {0, NULL}};

static PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_sweep", "Statistics of tensors in one pass.", 0, METHODS, SLOTS,
    NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__sweep(void) { return PyModuleDef_Init(&MODULE); }
