/* The compiled tape: what dynamic/tape.py does. It calls Python where a case is unusual.

     bind.c        an op on tensors, run and recorded           dynamic/tape.py
     record.c      the same of an op as a user calls it         graphs/op.py
     calls.c       what is known of the calls before            dynamic/options.py
     program.c     the pullback of an op as kernel calls        graphs/reverse.py
     learned.c     the one for a cotangent and what is saved    graphs/reverse.py
     walk.c        the entries that led to some tensors         dynamic/tape.py
                   and the pass back along them                 dynamic/tape.py
     step.c        a training step from one end to the other    dynamic/functional.py
     arrays.c      what is asked of arrays, and when they may be written over
     pool.c        memory that is used again                    dynamic/pool.py
     module.c      the module, and what Python lends it         dynamic/fast/__init__.py

   Without a C compiler at installation the tape in Python runs, and there is no pool, which NumPy can ask in C alone.
   Tensors and entries stay Python classes with slots; where in the object a slot lies is read off its member
   descriptor. Arrays are read by NumPy's C API; kernels are called as Python lends them.

   The arrays that a kernel reads are dropped after the last kernel that reads them, and never before: what a backward
   pass holds at its peak is one of the things that are measured. */

#ifndef GRAPHDUEL_LOOPS_H
#define GRAPHDUEL_LOOPS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

#define NPY_TARGET_VERSION NPY_2_3_API_VERSION /* the oldest NumPy that pyproject.toml admits */
#define NPY_NO_DEPRECATED_API NPY_2_3_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL graphduel_numpy
#ifndef IMPORTS_NUMPY /* module.c does, for all */
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility push(hidden) /* these names are for each other alone */
#endif

#ifdef _MSC_VER
#define THREAD_LOCAL __declspec(thread)
#else
#define THREAD_LOCAL _Thread_local
#endif

#define MOST_INPUTS 64 /* as fast/ says */
#define MOST_ARGUMENTS 4
#define MOST_VALUES 64
#define MOST_AXES 5

/* What Python lends ------------------------------------------------------------------------------------------------ */

extern PyTypeObject *Tensor, *Entry, *Leaf, *Pullback, *Sizes;
extern PyObject *add, *reduce;              /* numpy.add, numpy.add.reduce */
extern PyObject *summed;                    /* the same of so many numbers: graphs/ops/scans.py */
extern Py_ssize_t many;
extern PyObject *out_only;                  /* ("out",) */
extern PyObject *cast, *unbroadcast;        /* of a cotangent, to the dtype and the shape of an input */
extern PyObject *detours, *observers;       /* of dispatch */
extern PyObject *product, *matmul, *dot;    /* the kernel of a matrix product, and the two that it chooses from */
extern PyObject *divide, *multiply;         /* of NumPy */
extern PyObject *run_turned;                /* what runs a ufunc on arrays that disagree: graphs/ops/shapes.py */
extern PyObject *place, *shape_and_key;     /* the kernel that puts zeros around a slice, and its options' names */
extern Py_ssize_t small;                    /* elements of the result that the second is chosen for */
extern Py_ssize_t turned_ratio, turned_work;  /* from which on the kernel may turn it: graphs/ops/linalg.py */
extern PyObject *numbers, *broken;          /* numbers as arrays; what the interpreter explains better */
extern PyObject *clock_, *count;            /* inplace.clock, and what it counts with */
extern PyObject *nothing;                   /* {} */
extern PyObject *watchers;                  /* who is told of every array that is made here */
extern PyObject *recorder_name;             /* "recorder" */

extern THREAD_LOCAL Py_ssize_t reuse_from;  /* bytes of an array that may be written over: see pool.py */

PyObject *mode_now(void); /* of this thread: (recording, inference, batch), see grad_mode.py; NULL outside of any block */
int is_idle(void);        /* whether this thread records nothing */

/* Where the slots of objects lie. */
typedef struct {
    Py_ssize_t data, edge, grad;                                             /* of a Tensor */
    Py_ssize_t pullback, attrs, edges, saved, shape, dtype, sequence, hooks; /* of an Entry */
    Py_ssize_t leaf_tensor, leaf_shape, leaf_dtype, leaf_hooks, leaf_closed; /* of a Leaf */
    Py_ssize_t apply, frees;                                                 /* of a Pullback */
    Py_ssize_t latest, rewritten;                                            /* of the clock */
} Slots;

extern Slots at;

/* Python may delete what a slot holds, and put anything there: NULL is possible, and so is every type. Whoever reads a slot
   of an object that Python can reach checks both, and holds the value while other code may run. */
#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

static inline PyObject *
slot_of(PyObject *object, Py_ssize_t offset)  /* borrowed; NULL with an error set where the slot is empty */
{
    PyObject *value = SLOT(object, offset);
    if (value == NULL)
        PyErr_Format(PyExc_AttributeError, "a slot of a %s is empty", Py_TYPE(object)->tp_name);
    return value;
}

static inline PyObject *
typed_slot(PyObject *object, Py_ssize_t offset, const PyTypeObject *type)  /* the same, for a value of one type */
{
    PyObject *value = slot_of(object, offset);
    if (value == NULL || Py_IS_TYPE(value, (PyTypeObject *)type))
        return value;
    PyErr_Format(PyExc_TypeError, "a slot of a %s holds a %s in place of a %s", Py_TYPE(object)->tp_name,
                 Py_TYPE(value)->tp_name, type->tp_name);
    return NULL;
}

static inline Py_ssize_t
number_in(PyObject *object, Py_ssize_t offset)  /* -1 may be an error; no code of Python's runs */
{
    PyObject *number = typed_slot(object, offset, &PyLong_Type);
    return number == NULL ? -1 : PyLong_AsSsize_t(number);
}

/* Arrays ----------------------------------------------------------------------------------------------------------- */

#define ARRAY(object) ((PyArrayObject *)(object))
#define IS_ARRAY(object) PyArray_CheckExact(object)

static inline void
put(PyObject *object, Py_ssize_t offset, PyObject *value)  /* takes the reference */
{
    PyObject *old = SLOT(object, offset);
    SLOT(object, offset) = value;
    Py_XDECREF(old);
}

static inline int
is_floating(PyObject *array)
{
    return PyTypeNum_ISFLOAT(PyArray_TYPE(ARRAY(array)));
}

static inline int
is_held(PyObject *array)  /* whether a tensor may have its dtype: bools, ints and floats of up to 64 bits */
{
    switch (PyArray_DESCR(ARRAY(array))->kind) {
    case 'f':
        return PyArray_TYPE(ARRAY(array)) != NPY_LONGDOUBLE;
    case 'i': case 'u': case 'b':
        return 1;
    default:
        return 0;
    }
}

static inline PyObject *
dtype_number(PyObject *array)
{
    return PyLong_FromLong(PyArray_TYPE(ARRAY(array)));
}

static inline PyObject *
shape_of(PyObject *array)
{
    PyObject *shape = PyTuple_New(PyArray_NDIM(ARRAY(array)));
    for (int i = 0; shape != NULL && i < PyArray_NDIM(ARRAY(array)); i++)
        PyTuple_SET_ITEM(shape, i, PyLong_FromSsize_t(PyArray_DIM(ARRAY(array), i)));
    return shape;
}

/* Whether an array has a shape; no for what is none. */
static inline int
has_shape(PyObject *array, PyObject *shape)
{
    if (shape == NULL || !PyTuple_CheckExact(shape) || PyArray_NDIM(ARRAY(array)) != PyTuple_GET_SIZE(shape))
        return 0;
    for (int i = 0; i < PyArray_NDIM(ARRAY(array)); i++)
        if (!PyLong_CheckExact(PyTuple_GET_ITEM(shape, i))
            || PyArray_DIM(ARRAY(array), i) != PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i))) {
            PyErr_Clear();  /* of a number that is no size */
            return 0;
        }
    return 1;
}

static inline PyObject *
dtype_of(PyObject *array)  /* borrowed */
{
    return (PyObject *)PyArray_DESCR(ARRAY(array));
}

static inline PyObject *
as_array(PyObject *value)  /* takes and gives a reference; kernels of 0-d arrays give scalars */
{
    if (value == NULL || IS_ARRAY(value))
        return value;
    PyObject *array = PyArray_FromAny(value, NULL, 0, 0, NPY_ARRAY_ENSUREARRAY, NULL);
    Py_DECREF(value);
    return array;
}

/* arrays.c */
PyObject *sizes(PyObject *module, PyObject *tensor);
PyObject *getitem_of_sizes(void);
PyObject *made(PyObject *value);
PyObject *lay(PyObject *out, PyObject *const *arrays, Py_ssize_t count_);
int disagree(PyObject *first, PyObject *second);
int is_ours(PyObject *array);
PyObject *call_kernel(PyObject *kernel, PyObject *const *args, Py_ssize_t count_, PyObject *attrs);
int fits_into(PyObject *array, PyObject *target);
PyObject *call_into(PyObject *kernel, PyObject *const *args, Py_ssize_t count_, PyObject *out);

typedef struct Inputs Inputs;  /* inputs.h */

/* bind.c */
typedef struct Recorder Recorder;
extern PyTypeObject RecorderType;
PyObject *run_and_record(Recorder *recorder, Inputs *inputs, PyObject *attrs);
PyObject *recorded(Recorder *recorder, const Inputs *inputs, PyObject *out, PyObject *attrs);
PyObject *binder(PyObject *module, PyObject *general);

/* calls.c */
typedef struct Call Call;

#define BUCKETS 256

typedef struct {
    Call *latest[BUCKETS];
} Calls;

int is_plain_call(const Inputs *inputs, PyObject *const *options, Py_ssize_t positional, PyObject *names);
PyObject *find_call(Calls *calls, const Inputs *inputs, PyObject *const *options, Py_ssize_t positional,
                    PyObject *names);
int keep_call(Calls *calls, const Inputs *inputs, PyObject *const *options, Py_ssize_t positional, PyObject *names,
              PyObject *value);
PyObject *list_calls(const Calls *calls);
int visit_calls(Calls *calls, visitproc visit, void *arg);
void free_calls(Calls *calls);

/* record.c */
extern PyTypeObject RecordType;

/* program.c */
extern PyTypeObject ProgramType;
int run_program(PyObject *program, PyObject *entry, int keep, PyObject *cotangents);

/* learned.c */
extern PyTypeObject LearnedType;

/* walk.c */
PyObject *history(PyObject *module, PyObject *roots);
PyObject *walk(PyObject *module, PyObject *const *args, Py_ssize_t count_);

/* module.c */
Py_ssize_t offset_of(PyObject *type, const char *name);

/* pool.c */
int find_allocator(void);
void keep_pages(void);
PyObject *new_pool(PyObject *module, PyObject *args);
PyObject *enter_pool(PyObject *module, PyObject *pool);
PyObject *leave_pool(PyObject *module, PyObject *args);
PyObject *pool_stats(PyObject *module, PyObject *pool);

/* step.c */
PyObject *step(PyObject *module, PyObject *const *args, Py_ssize_t count_);

#if defined(__GNUC__) && !defined(_WIN32)
#pragma GCC visibility pop
#endif

#endif
