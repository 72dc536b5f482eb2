/* The inner loops of the tape, compiled. Each says what Python beside it says, and stands aside where that knows more:

     Record    an op on tensors, run and recorded           dynamic/shortcuts.py
     Program   the pullback of an op as kernel calls        dynamic/straight.py
     history   the entries that led to some tensors         dynamic/tape.py
     walk      the pass back along them                     dynamic/backward.py

   Nothing here is needed: without a C compiler at installation the Python runs (PEP 399). Tensors and entries stay
   Python classes with slots; where in the object a slot lies is read off its member descriptor. Nothing of NumPy's is
   called but what Python lends, so that this file is built without its headers.

   The arrays that a kernel reads are dropped after the last kernel that reads them, as in the Python, and never before:
   what a backward pass holds at its peak is one of the things that are measured. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <structmember.h>

#define MOST_INPUTS 2
#define MOST_ARGUMENTS 4
#define MOST_VALUES 64
#define MOST_AXES 5

/* Whether an argument is a value that nobody holds but the expression it is in. */
#if PY_VERSION_HEX >= 0x030E0000
#define IS_TEMPORARY(object) PyUnstable_Object_IsUniqueReferencedTemporary(object)
#else
#define IS_TEMPORARY(object) (Py_REFCNT(object) == 1)
#endif

/* What Python lends ------------------------------------------------------------------------------------------------ */

static PyTypeObject *Tensor, *Entry, *Leaf, *ndarray, *Memory;
static PyObject *asarray, *add, *reduce;       /* numpy.asarray, numpy.add, numpy.add.reduce */
static PyObject *add_op;                       /* the op, for a pool */
static PyObject *out_only;                     /* ("out",) */
static PyObject *cast, *unbroadcast;           /* of a cotangent, to the dtype and the shape of an input */
static PyObject *detours, *runners, *least;    /* dispatch */
static PyObject *numbers, *broken;             /* numbers as arrays; what the interpreter explains better */
static PyObject *clock_, *count;               /* inplace.clock, and what it counts with */
static PyObject *nothing;                      /* {} */
static PyObject *watchers;                     /* who is told of every array that is made here */

#ifdef _MSC_VER
static __declspec(thread) int is_idle;         /* whether this thread records nothing: see mode.py */
#else
static _Thread_local int is_idle;
#endif

static struct {
    Py_ssize_t data, edge, grad;                                                     /* of a Tensor */
    Py_ssize_t pullback, attrs, edges, saved, shape, dtype, sequence, hooks;         /* of an Entry */
    Py_ssize_t leaf_tensor, leaf_shape, leaf_dtype, leaf_hooks, leaf_closed;         /* of a Leaf */
    Py_ssize_t apply;                                                                /* of a Pullback */
    Py_ssize_t latest, rewritten;                                                    /* of the clock */
} at;

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

static void
put(PyObject *object, Py_ssize_t offset, PyObject *value)  /* takes the reference */
{
    PyObject *old = SLOT(object, offset);
    SLOT(object, offset) = value;
    Py_XDECREF(old);
}

static Py_ssize_t
offset_of(PyObject *type, const char *name)
{
    PyObject *descriptor = PyObject_GetAttrString(type, name);
    Py_ssize_t offset = -1;
    if (descriptor != NULL) {
        if (Py_IS_TYPE(descriptor, &PyMemberDescr_Type))
            offset = ((PyMemberDescrObject *)descriptor)->d_member->offset;
        else
            PyErr_Format(PyExc_TypeError, "%s is not a slot", name);
        Py_DECREF(descriptor);
    }
    return offset;
}

/* Arrays ----------------------------------------------------------------------------------------------------------- */

/* The head of NumPy's arrays and dtypes, which has been the same in every version since 2.0. `connect` compares it with
   what Python says of some arrays, and refuses where they differ. */
typedef struct {
    PyObject_HEAD
    char *data;
    int ndim;
    Py_ssize_t *shape, *strides;
    PyObject *base;
    PyObject *dtype;
    int flags;
} Array;

typedef struct {
    PyObject_HEAD
    PyTypeObject *scalar;
    char kind, code, order, former_flags;
    int number;
    uint64_t flags;
    Py_ssize_t itemsize;
} DType;

#define WRITEABLE 0x0400
#define CARRAY 0x0501 /* rows one after the other, aligned, writeable */
#define ARRAY(object) ((Array *)(object))
#define DTYPE(object) ((DType *)(object))

static int
is_floating(PyObject *array)
{
    return DTYPE(ARRAY(array)->dtype)->kind == 'f';
}

static PyObject *
dtype_number(PyObject *array)
{
    return PyLong_FromLong(DTYPE(ARRAY(array)->dtype)->number);
}

static PyObject *
shape_of(PyObject *array)
{
    PyObject *shape = PyTuple_New(ARRAY(array)->ndim);
    for (int i = 0; shape != NULL && i < ARRAY(array)->ndim; i++)
        PyTuple_SET_ITEM(shape, i, PyLong_FromSsize_t(ARRAY(array)->shape[i]));
    return shape;
}

static int
has_shape(PyObject *array, PyObject *shape)
{
    if (ARRAY(array)->ndim != PyTuple_GET_SIZE(shape))
        return 0;
    for (int i = 0; i < ARRAY(array)->ndim; i++)
        if (ARRAY(array)->shape[i] != PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)))
            return 0;
    return 1;
}

static Py_ssize_t
nbytes_of(PyObject *array)
{
    Py_ssize_t nbytes = DTYPE(ARRAY(array)->dtype)->itemsize;
    for (int i = 0; i < ARRAY(array)->ndim; i++)
        nbytes *= ARRAY(array)->shape[i];
    return nbytes;
}

static int
is_large(PyObject *const *arrays, Py_ssize_t count_)  /* whether a pool may have memory for what is made of them */
{
    if (PyList_GET_SIZE(runners) == 0)
        return 0;
    Py_ssize_t most = 0;
    for (Py_ssize_t i = 0; i < count_; i++)
        most = Py_MAX(most, nbytes_of(arrays[i]));
    return most >= PyLong_AsSsize_t(PyList_GET_ITEM(least, 0));
}

/* Whether the structs above are what arrays are; told by a sample for which Python says the same. */
static int
is_as_told(PyObject *array, PyObject *shape, PyObject *dtype, PyObject *base, int number, int itemsize, int writeable)
{
    return ARRAY(array)->ndim == PyTuple_GET_SIZE(shape) && has_shape(array, shape) && ARRAY(array)->dtype == dtype
           && (ARRAY(array)->base == NULL ? Py_None : ARRAY(array)->base) == base
           && DTYPE(dtype)->number == number && DTYPE(dtype)->itemsize == itemsize && is_floating(array)
           && !(ARRAY(array)->flags & WRITEABLE) == !writeable;
}

static PyObject *
as_array(PyObject *value)  /* takes and gives a reference; kernels of 0-d arrays give scalars */
{
    if (value == NULL || Py_IS_TYPE(value, ndarray))
        return value;
    PyObject *array = PyObject_CallOneArg(asarray, value);
    Py_DECREF(value);
    return array;
}

static PyObject *
made(PyObject *value)  /* the same of what has just been made: whoever watches is told of it */
{
    PyObject *array = as_array(value);
    for (Py_ssize_t i = 0; array != NULL && i < PyList_GET_SIZE(watchers); i++) {
        PyObject *done = PyObject_CallOneArg(PyList_GET_ITEM(watchers, i), array);
        if (done == NULL)
            Py_CLEAR(array);
        Py_XDECREF(done);
    }
    return array;
}

/* Whether the memory of an array, to which `references` are ours, may be written over: nobody else sees it, as the array, as
   the base of it, or as the memory that a pool has laid under it (blocks.py: a block holds two arrays of its own). */
static int
is_ours(PyObject *array, Py_ssize_t references)
{
    if (!Py_IS_TYPE(array, ndarray) || Py_REFCNT(array) != references || (ARRAY(array)->flags & CARRAY) != CARRAY)
        return 0;
    PyObject *base = ARRAY(array)->base;
    return base == NULL || (Py_IS_TYPE(base, Memory) && Py_REFCNT(base) <= 2 && Py_REFCNT(ARRAY(base)->base) <= 2);
}

static PyObject *
call_into(PyObject *kernel, PyObject *const *args, Py_ssize_t count_, PyObject *out)
{
    PyObject *all[MOST_ARGUMENTS + 1];
    memcpy(all, args, (size_t)count_ * sizeof(PyObject *));
    all[count_] = out;
    return PyObject_Vectorcall(kernel, all, (size_t)count_, out_only);
}

static PyObject *
call_for_pool(PyObject *op, PyObject *const *args, Py_ssize_t count_, PyObject *attrs)
{
    PyObject *inputs = PyTuple_New(count_);
    for (Py_ssize_t i = 0; inputs != NULL && i < count_; i++)
        PyTuple_SET_ITEM(inputs, i, Py_NewRef(args[i]));
    PyObject *all[] = {op, inputs, attrs};
    PyObject *runner = Py_NewRef(PyList_GET_ITEM(runners, PyList_GET_SIZE(runners) - 1));
    PyObject *out = inputs == NULL ? NULL : PyObject_Vectorcall(runner, all, 3, NULL);
    Py_DECREF(runner);
    Py_XDECREF(inputs);
    return out;
}

/* Record ----------------------------------------------------------------------------------------------------------- */

typedef struct {
    int source;      /* 0 and 1: an input, 2: the result, 3: the attributes */
    int is_shape;    /* of what is asked for most often */
    PyObject *name;  /* of an attribute of it, or NULL */
} Field;

typedef struct {
    PyObject *pullback;  /* or, by the numbers of axes of the inputs, a mapping to pullbacks */
    PyObject *by_axes[MOST_AXES][MOST_AXES];  /* what it has given already, borrowed: it keeps them all */
    PyObject *beside;    /* that where the other input is a number */
    Py_ssize_t count;
    Field *fields;       /* of what is saved */
} Want;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *op, *kernel, *general;
    PyObject *prepared;  /* of an op with options, or NULL */
    int arity, ruled;    /* ruled: the inputs that have a rule, as a bit set */
    int swapped, by_axes, takes_numbers;
    int overwrites;      /* whether its kernel may write into an input that it reads */
    Want wants[1 << MOST_INPUTS];
} Record;

static PyObject *
generally(Record *record, PyObject *const *args, Py_ssize_t count_, PyObject *names)
{
    if (!record->swapped || count_ != 2)
        return PyObject_Vectorcall(record->general, args, (size_t)count_, names);
    PyObject *turned[] = {args[1], args[0]};
    return PyObject_Vectorcall(record->general, turned, 2, names);
}

static PyObject *
saved_values(const Want *want, PyObject *const *arrays, PyObject *out, PyObject *attrs)
{
    PyObject *saved = PyTuple_New(want->count);
    for (Py_ssize_t i = 0; saved != NULL && i < want->count; i++) {
        const Field *field = &want->fields[i];
        PyObject *value = field->source < 2 ? arrays[field->source] : field->source == 2 ? out : attrs;
        if (field->name == NULL)
            Py_INCREF(value);
        else if (field->is_shape)
            value = shape_of(value);
        else
            value = field->source == 3 ? PyObject_GetItem(value, field->name) : PyObject_GetAttr(value, field->name);
        if (value == NULL)
            Py_CLEAR(saved);
        else
            PyTuple_SET_ITEM(saved, i, value);
    }
    return saved;
}

static PyObject *
pullback_for(const Record *record, Want *want, PyObject *const *arrays, PyObject *given, int beside)
{
    if (given != NULL)
        return Py_NewRef(given);
    if (!record->by_axes)
        return Py_NewRef(beside ? want->beside : want->pullback);
    int x = ARRAY(arrays[0])->ndim, y = ARRAY(arrays[1])->ndim, known = x < MOST_AXES && y < MOST_AXES;
    if (known && want->by_axes[x][y] != NULL)
        return Py_NewRef(want->by_axes[x][y]);
    PyObject *key = Py_BuildValue("ii", x, y);
    PyObject *found = key == NULL ? NULL : PyObject_GetItem(want->pullback, key);
    Py_XDECREF(key);
    if (known)
        want->by_axes[x][y] = found;
    return found;
}

/* The entry of an op that has just run: a new reference, or NULL with an error set. */
static PyObject *
entry_of(Record *record, int wanted, PyObject *const *arrays, PyObject *const *edges, PyObject *out,
         PyObject *attrs, PyObject *pullback, int beside)
{
    Want *want = &record->wants[wanted];
    PyObject *entry = Entry->tp_alloc(Entry, 0);
    if (entry == NULL)
        return NULL;
    PyObject *ends = PyTuple_New(record->arity);
    for (int i = 0; ends != NULL && i < record->arity; i++)
        PyTuple_SET_ITEM(ends, i, Py_NewRef(wanted >> i & 1 ? edges[i] : Py_None));
    SLOT(entry, at.edges) = ends;
    SLOT(entry, at.pullback) = pullback_for(record, want, arrays, pullback, beside);
    SLOT(entry, at.saved) = saved_values(want, arrays, out, attrs);
    SLOT(entry, at.attrs) = Py_NewRef(attrs);
    SLOT(entry, at.shape) = shape_of(out);
    SLOT(entry, at.dtype) = Py_NewRef(ARRAY(out)->dtype);
    SLOT(entry, at.hooks) = Py_NewRef(Py_None);
    SLOT(entry, at.sequence) = Py_TYPE(count)->tp_iternext(count);
    if (PyErr_Occurred())
        Py_CLEAR(entry);
    return entry;
}

/* Which inputs want a gradient, as a bit set: none of them needs an entry. */
static int
wanted_of(const Record *record, PyObject *const *edges, PyObject *out)
{
    int wanted = 0;
    if (is_idle || !is_floating(out))
        return 0;
    for (int i = 0; i < record->arity; i++)
        if (edges[i] != Py_None)
            wanted |= record->ruled & 1 << i;
    return wanted;
}

static PyObject *
recorded(Record *record, PyObject *const *arrays, PyObject *const *edges, PyObject *out, PyObject *attrs,
         PyObject *pullback, int beside)  /* takes the reference to `out` */
{
    int wanted = wanted_of(record, edges, out);
    PyObject *edge = wanted ? entry_of(record, wanted, arrays, edges, out, attrs, pullback, beside) : Py_NewRef(Py_None);
    PyObject *result = edge == NULL ? NULL : Tensor->tp_alloc(Tensor, 0);
    if (result == NULL) {
        Py_XDECREF(edge);
        Py_DECREF(out);
        return NULL;
    }
    SLOT(result, at.data) = out;
    SLOT(result, at.edge) = edge;
    SLOT(result, at.grad) = Py_NewRef(Py_None);
    return result;
}

static int
is_saved(const Want *want, int input)
{
    for (Py_ssize_t i = 0; i < want->count; i++)
        if (want->fields[i].source == input && want->fields[i].name == NULL)
            return 1;
    return 0;
}

static int
fits_into(PyObject *array, PyObject *target)  /* by broadcasting, without a change of dtype */
{
    int added = ARRAY(target)->ndim - ARRAY(array)->ndim;
    if (added < 0 || ARRAY(array)->dtype != ARRAY(target)->dtype)
        return 0;
    for (int i = 0; i < ARRAY(array)->ndim; i++)
        if (ARRAY(array)->shape[i] != 1 && ARRAY(array)->shape[i] != ARRAY(target)->shape[i + added])
            return 0;
    return 1;
}

/* The input that dies with this call and may take its result, where a pool is on; -1 where there is none. */
static int
dying_input(const Record *record, PyObject *const *args, PyObject *const *arrays, PyObject *const *edges)
{
    if (!record->overwrites)
        return -1;
    int wanted = 0;
    for (int i = 0; !is_idle && i < record->arity; i++)
        if (edges[i] != Py_None)
            wanted |= record->ruled & 1 << i;
    for (int i = 0; i < record->arity; i++) {
        PyObject *arg = args[record->swapped ? 1 - i : i];
        if (Py_IS_TYPE(arg, Tensor) && IS_TEMPORARY(arg) && is_ours(arrays[i], 2) && is_floating(arrays[i])
            && !is_saved(&record->wants[wanted], i) && (record->arity == 1 || fits_into(arrays[1 - i], arrays[i])))
            return i;
    }
    return -1;
}

static PyObject *
run(const Record *record, PyObject *const *arrays, PyObject *attrs, PyObject *const *args, PyObject *const *edges)
{
    if (!is_large(arrays, record->arity))
        return made(PyDict_GET_SIZE(attrs) == 0
                        ? PyObject_Vectorcall(record->kernel, arrays, (size_t)record->arity, NULL)
                        : PyObject_VectorcallDict(record->kernel, arrays, (size_t)record->arity, attrs));
    int dying = dying_input(record, args, arrays, edges);
    return made(dying >= 0 ? call_into(record->kernel, arrays, record->arity, arrays[dying])
                           : call_for_pool(record->op, arrays, record->arity, attrs));
}

/* A number, other than 0, as the array that it is beside an array; 0.0 and -0.0 would be one key. */
static PyObject *
number_beside(PyObject *value, PyObject *array)
{
    PyObject *dtype = dtype_number(array);
    PyObject *key = dtype == NULL ? NULL : PyTuple_Pack(3, value, (PyObject *)Py_TYPE(value), dtype);
    PyObject *found = key == NULL ? NULL : PyObject_GetItem(numbers, key);
    Py_XDECREF(dtype);
    Py_XDECREF(key);
    return found;
}

static int
is_number(const Record *record, PyObject *value)
{
    return record->takes_numbers && (PyLong_CheckExact(value) || PyFloat_CheckExact(value))
           && PyObject_IsTrue(value) == 1;
}

static int
must_stand_aside(void)
{
    return PySet_GET_SIZE(detours) != 0 || PyObject_IsTrue(SLOT(clock_, at.rewritten)) != 0;
}

static int
is_out_of_the_ordinary(PyObject *result)  /* and whether the interpreter has to look at it */
{
    if (result != NULL || !PyErr_ExceptionMatches(broken))
        return 0;
    PyErr_Clear();
    return 1;
}

static PyObject *
call_with_options(Record *record, PyObject *const *args, Py_ssize_t positional, PyObject *names)
{
    Py_ssize_t total = positional + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    PyObject *array = Py_NewRef(SLOT(args[0], at.data)), *edge = Py_NewRef(SLOT(args[0], at.edge));
    PyObject *given = NULL, *out = NULL, *result = NULL;
    PyObject **stack = PyMem_New(PyObject *, total + 1);
    PyObject *shape = shape_of(array), *dtype = dtype_number(array);
    if (stack == NULL)
        PyErr_NoMemory();
    else if (shape != NULL && dtype != NULL) {
        stack[0] = shape;
        stack[1] = dtype;
        for (Py_ssize_t i = 1; i < total; i++)
            stack[i + 1] = args[i];
        given = PyObject_Vectorcall(record->prepared, stack, (size_t)positional + 1, names);
    }
    if (given != NULL)
        out = run(record, &array, PyTuple_GET_ITEM(given, 0), args, &edge);
    if (out != NULL)
        result = recorded(record, &array, &edge, out, PyTuple_GET_ITEM(given, 0), PyTuple_GET_ITEM(given, 1), 0);
    PyMem_Free(stack);
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    Py_XDECREF(given);
    Py_DECREF(array);
    Py_DECREF(edge);
    return is_out_of_the_ordinary(result) ? generally(record, args, positional, names) : result;
}

static PyObject *
call_record(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Record *record = (Record *)self;
    Py_ssize_t positional = PyVectorcall_NARGS(nargsf);
    if (record->prepared != NULL) {
        if (positional == 0 || !Py_IS_TYPE(args[0], Tensor) || must_stand_aside())
            return generally(record, args, positional, names);
        return call_with_options(record, args, positional, names);
    }
    if (positional != record->arity || names != NULL || must_stand_aside())
        return generally(record, args, positional, names);
    PyObject *arrays[MOST_INPUTS] = {NULL}, *edges[MOST_INPUTS] = {NULL}, *result = NULL, *out = NULL;
    int number = -1;
    for (int i = 0; i < record->arity; i++) {
        PyObject *arg = args[record->swapped ? 1 - i : i];
        if (Py_IS_TYPE(arg, Tensor)) {
            arrays[i] = Py_NewRef(SLOT(arg, at.data));
            edges[i] = Py_NewRef(SLOT(arg, at.edge));
        }
        else if (record->arity == 2 && number < 0 && is_number(record, arg))
            number = i;
        else
            goto aside;
    }
    if (number >= 0) {
        arrays[number] = number_beside(args[record->swapped ? 1 - number : number], arrays[1 - number]);
        edges[number] = Py_NewRef(Py_None);
    }
    if (number < 0 || arrays[number] != NULL)
        out = run(record, arrays, nothing, args, edges);
    if (out != NULL)
        result = recorded(record, arrays, edges, out, nothing, NULL, number >= 0);
    if (!is_out_of_the_ordinary(result))
        goto done;
aside:
    result = generally(record, args, positional, names);
done:
    for (int i = 0; i < record->arity; i++) {
        Py_XDECREF(arrays[i]);
        Py_XDECREF(edges[i]);
    }
    return result;
}

static int
read_fields(Want *want, PyObject *fields)  /* a tuple of pairs (source, name or None) */
{
    want->count = PyTuple_GET_SIZE(fields);
    want->fields = PyMem_New(Field, want->count + 1);
    if (want->fields == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < want->count; i++) {
        PyObject *name;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(fields, i), "iO", &want->fields[i].source, &name)) {
            want->count = i;
            return -1;
        }
        want->fields[i].name = name == Py_None ? NULL : Py_NewRef(name);
        want->fields[i].is_shape = want->fields[i].source < 3 && PyUnicode_Check(name)
                                   && PyUnicode_CompareWithASCIIString(name, "shape") == 0;
    }
    return 0;
}

static PyObject *
new_record(PyTypeObject *type, PyObject *args, PyObject *options)
{
    static char *words[] = {"op", "kernel", "general", "arity", "wants", "prepared", "swapped", "by_axes",
                            "takes_numbers", "overwrites", NULL};
    PyObject *op, *kernel, *general, *wants, *prepared;
    int arity, swapped, by_axes, takes_numbers, overwrites;
    if (!PyArg_ParseTupleAndKeywords(args, options, "OOOiO!Opppp", words, &op, &kernel, &general, &arity,
                                     &PyDict_Type, &wants, &prepared, &swapped, &by_axes, &takes_numbers,
                                     &overwrites))
        return NULL;
    if (arity < 1 || arity > MOST_INPUTS) {
        PyErr_Format(PyExc_ValueError, "%d inputs, where 1 to %d can be", arity, MOST_INPUTS);
        return NULL;
    }
    Record *record = (Record *)type->tp_alloc(type, 0);
    if (record == NULL)
        return NULL;
    record->vectorcall = call_record;
    record->op = Py_NewRef(op);
    record->kernel = Py_NewRef(kernel);
    record->general = Py_NewRef(general);
    record->prepared = prepared == Py_None ? NULL : Py_NewRef(prepared);
    record->arity = arity;
    record->swapped = swapped;
    record->by_axes = by_axes;
    record->takes_numbers = takes_numbers;
    record->overwrites = overwrites;
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(wants, &position, &key, &value)) {  /* {wanted: (fields, pullback, beside a number)} */
        long wanted = PyLong_AsLong(key);
        PyObject *fields, *pullback, *beside;
        if (wanted < 1 || wanted >= 1 << arity
            || !PyArg_ParseTuple(value, "O!OO", &PyTuple_Type, &fields, &pullback, &beside)
            || read_fields(&record->wants[wanted], fields) < 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "no such set of inputs");
            Py_DECREF(record);
            return NULL;
        }
        record->wants[wanted].pullback = Py_NewRef(pullback);
        record->wants[wanted].beside = Py_NewRef(beside);
        record->ruled |= (int)wanted;
    }
    return (PyObject *)record;
}

static int
traverse_record(PyObject *self, visitproc visit, void *arg)
{
    Record *record = (Record *)self;
    Py_VISIT(record->op);
    Py_VISIT(record->kernel);
    Py_VISIT(record->general);
    Py_VISIT(record->prepared);
    for (int i = 0; i < 1 << MOST_INPUTS; i++) {
        Py_VISIT(record->wants[i].pullback);
        Py_VISIT(record->wants[i].beside);
    }
    return 0;
}

static void
free_record(PyObject *self)
{
    Record *record = (Record *)self;
    PyObject_GC_UnTrack(self);
    Py_XDECREF(record->op);
    Py_XDECREF(record->kernel);
    Py_XDECREF(record->general);
    Py_XDECREF(record->prepared);
    for (int i = 0; i < 1 << MOST_INPUTS; i++) {
        Want *want = &record->wants[i];
        Py_XDECREF(want->pullback);
        Py_XDECREF(want->beside);
        for (Py_ssize_t j = 0; want->fields != NULL && j < want->count; j++)
            Py_XDECREF(want->fields[j].name);
        PyMem_Free(want->fields);
    }
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject RecordType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynamic._native.Record",
    .tp_doc = PyDoc_STR("An op on tensors and numbers: run, and recorded where a gradient will need it."),
    .tp_basicsize = sizeof(Record),
    /* As of a Python function: found on a class, it takes the instance first. */
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(Record, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = new_record,
    .tp_dealloc = free_record,
    .tp_traverse = traverse_record,
};

static PyObject *
bind_record(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(type))
{
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

/* Program ---------------------------------------------------------------------------------------------------------- */

/* An instruction calls a kernel, or delivers a value to an input. Values are numbered: first what is saved, then the
   cotangent, then what the calls make. An argument below 0 is a constant. */
typedef struct {
    PyObject *op;      /* whose kernel it is, for a pool; NULL of a view */
    PyObject *kernel;  /* NULL: deliver `args[0]` to the input `out` */
    PyObject *attrs;   /* or NULL */
    int into;          /* the arguments that may take the result, when nobody reads them any more, as a bit set */
    int count, out, dropped_count;
    int args[MOST_ARGUMENTS], dropped[MOST_ARGUMENTS];
} Instruction;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *otherwise;  /* the rules, for what is no array */
    PyObject *constants;  /* a tuple; with `typed`, each a mapping from the number of a dtype */
    int typed, conforms;
    int saved, values;
    Py_ssize_t count;
    Instruction *code;
} Program;

/* The sum over the axes that broadcasting added or stretched. */
static PyObject *
summed(PyObject *value, PyObject *shape)
{
    int added = ARRAY(value)->ndim - (int)PyTuple_GET_SIZE(shape), count_ = 0;
    PyObject *axes[MOST_AXES], *args[] = {value, shape};
    if (added < 0 || ARRAY(value)->ndim > MOST_AXES || PyList_GET_SIZE(runners) != 0)
        return PyObject_Vectorcall(unbroadcast, args, 2, NULL);
    for (int i = 0; i < ARRAY(value)->ndim; i++)
        if (i < added || (PyLong_AsLong(PyTuple_GET_ITEM(shape, i - added)) == 1 && ARRAY(value)->shape[i] != 1))
            axes[count_++] = PyLong_FromLong(i);  /* small ints are there already */
    PyObject *over = PyTuple_New(count_);
    for (int i = 0; i < count_; i++)
        if (over != NULL)
            PyTuple_SET_ITEM(over, i, axes[i]);
    args[1] = over;
    PyObject *sum = over == NULL ? NULL : as_array(PyObject_Vectorcall(reduce, args, 2, NULL));
    Py_XDECREF(over);
    if (sum != NULL && !has_shape(sum, shape))
        Py_SETREF(sum, PyObject_CallMethod(sum, "reshape", "(O)", shape));
    return sum;
}

static int
conform(PyObject **value, PyObject *edge)  /* summed over what broadcasting added, and cast back */
{
    int leaf = Py_IS_TYPE(edge, Leaf);
    PyObject *dtype = SLOT(edge, leaf ? at.leaf_dtype : at.dtype), *shape = SLOT(edge, leaf ? at.leaf_shape : at.shape);
    if (ARRAY(*value)->dtype != dtype) {
        PyObject *args[] = {*value, dtype};
        Py_SETREF(*value, made(PyObject_Vectorcall(cast, args, 2, NULL)));
    }
    if (*value != NULL && !has_shape(*value, shape))
        Py_SETREF(*value, made(summed(*value, shape)));
    return *value == NULL ? -1 : 0;
}

static PyObject *
total(PyObject *const *args)  /* into the first of them where a pool is on and nobody else sees it */
{
    if (!is_large(args, 1))
        return PyObject_Vectorcall(add, args, 2, NULL);
    if (is_ours(args[0], 1) && ARRAY(args[0])->ndim == ARRAY(args[1])->ndim && fits_into(args[1], args[0]))
        return call_into(add, args, 2, args[0]);
    return call_for_pool(add_op, args, 2, nothing);
}

static int
arrive(PyObject *cotangents, PyObject *edge, PyObject *value)  /* add a contribution; takes the reference */
{
    PyObject *held = PyDict_GetItemWithError(cotangents, edge);
    if (held != NULL) {
        Py_INCREF(held);
        int failed = PyDict_DelItem(cotangents, edge);
        PyObject *args[] = {held, value};
        PyObject *sum = failed ? NULL : made(total(args));
        Py_DECREF(held);
        Py_SETREF(value, sum);
    }
    if (value == NULL || PyErr_Occurred()) {
        Py_XDECREF(value);
        return -1;
    }
    int failed = PyDict_SetItem(cotangents, edge, value);
    Py_DECREF(value);
    return failed;
}

/* The argument that takes the result of a kernel, where a pool is on: one that is not read again and that nobody else sees,
   best one that was made here; -1 where there is none. */
static int
dying_argument(const Instruction *step, PyObject *entry, PyObject *const *values)
{
    int best = -1;
    for (int i = 0; i < step->count; i++) {
        int value = step->args[i], dropped = 0;
        for (int j = 0; j < step->dropped_count; j++)
            dropped |= step->dropped[j] == value;
        if (value < 0 || !dropped || !(step->into >> i & 1) || (best >= 0 && step->args[best] >= value))
            continue;
        if (is_ours(values[value], 1) && has_shape(values[value], SLOT(entry, at.shape))
            && ARRAY(values[value])->dtype == SLOT(entry, at.dtype))
            best = i;
    }
    return best;
}

static PyObject *
call_kernel(const Instruction *step, PyObject *const *args, PyObject *entry,
            PyObject *const *values, int pooled)
{
    if (pooled && step->op != NULL) {
        int dying = step->attrs == NULL ? dying_argument(step, entry, values) : -1;
        if (dying >= 0)
            return call_into(step->kernel, args, step->count, args[dying]);
        return call_for_pool(step->op, args, step->count, step->attrs == NULL ? nothing : step->attrs);
    }
    return step->attrs == NULL ? PyObject_Vectorcall(step->kernel, args, (size_t)step->count, NULL)
                               : PyObject_VectorcallDict(step->kernel, args, (size_t)step->count, step->attrs);
}

static int
execute(const Program *program, const Instruction *step, PyObject *entry, PyObject **values,
        PyObject *const *constants, PyObject *edges, PyObject *cotangents, int pooled)
{
    if (step->kernel == NULL) {
        PyObject *edge = PyTuple_GET_ITEM(edges, step->out), *value = Py_NewRef(values[step->args[0]]);
        for (int i = 0; i < step->dropped_count; i++)
            Py_CLEAR(values[step->dropped[i]]);
        if (program->conforms && conform(&value, edge) < 0) {
            Py_XDECREF(value);
            return -1;
        }
        return arrive(cotangents, edge, value);
    }
    PyObject *args[MOST_ARGUMENTS];
    for (int i = 0; i < step->count; i++)
        args[i] = step->args[i] < 0 ? constants[-1 - step->args[i]] : values[step->args[i]];
    PyObject *out = made(call_kernel(step, args, entry, values, pooled));
    for (int i = 0; i < step->dropped_count; i++)
        Py_CLEAR(values[step->dropped[i]]);
    values[step->out] = out;
    return out == NULL ? -1 : 0;
}

static int
load_constants(const Program *program, PyObject *cotangent, PyObject **constants)  /* borrowed references */
{
    Py_ssize_t count_ = PyTuple_GET_SIZE(program->constants);
    PyObject *dtype = NULL;
    if (program->typed && count_ != 0 && (dtype = dtype_number(cotangent)) == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < count_; i++) {
        constants[i] = PyTuple_GET_ITEM(program->constants, i);
        if (program->typed) {
            PyObject *found = PyObject_GetItem(constants[i], dtype);
            if (found == NULL) {
                Py_DECREF(dtype);
                return -1;
            }
            constants[i] = found;
            Py_DECREF(found);  /* the mapping keeps it */
        }
    }
    Py_XDECREF(dtype);
    return 0;
}

/* Whether a pool may have memory for what a pullback makes: that is as large as the cotangents it is between. */
static int
is_for_a_pool(PyObject *cotangent, PyObject *edges)
{
    if (PyList_GET_SIZE(runners) == 0)
        return 0;
    Py_ssize_t most = nbytes_of(cotangent);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(edges); i++) {
        PyObject *edge = PyTuple_GET_ITEM(edges, i);
        if (edge == Py_None)
            continue;
        int leaf = Py_IS_TYPE(edge, Leaf);
        PyObject *shape = SLOT(edge, leaf ? at.leaf_shape : at.shape);
        Py_ssize_t nbytes = DTYPE(SLOT(edge, leaf ? at.leaf_dtype : at.dtype))->itemsize;
        for (Py_ssize_t axis = 0; axis < PyTuple_GET_SIZE(shape); axis++)
            nbytes *= PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, axis));
        most = Py_MAX(most, nbytes);
    }
    return most >= PyLong_AsSsize_t(PyList_GET_ITEM(least, 0));
}

/* Carry the cotangent of an entry to its inputs: 1 when done, 0 when Python has to, -1 with an error set. */
static int
run_program(const Program *program, PyObject *entry, int keep, PyObject *cotangents)
{
    PyObject *values[MOST_VALUES] = {NULL}, *constants[MOST_ARGUMENTS * 4];
    PyObject *saved = SLOT(entry, at.saved), *edges = SLOT(entry, at.edges), *cotangent;
    if (!PyTuple_CheckExact(saved) || PyTuple_GET_SIZE(saved) != program->saved || !PyTuple_CheckExact(edges))
        return 0;
    cotangent = PyDict_GetItemWithError(cotangents, entry);
    if (cotangent == NULL || !Py_IS_TYPE(cotangent, ndarray))
        return PyErr_Occurred() ? -1 : 0;
    int pooled = is_for_a_pool(cotangent, edges);
    if (load_constants(program, cotangent, constants) < 0)
        return -1;
    Py_INCREF(edges);
    for (int i = 0; i < program->saved; i++)
        values[i] = Py_NewRef(PyTuple_GET_ITEM(saved, i));
    values[program->saved] = Py_NewRef(cotangent);
    int failed = PyDict_DelItem(cotangents, entry);
    if (!keep) {
        put(entry, at.saved, Py_NewRef(Py_None));
        put(entry, at.edges, PyTuple_New(0));
    }
    for (Py_ssize_t i = 0; !failed && i < program->count; i++)
        failed = execute(program, &program->code[i], entry, values, constants, edges, cotangents, pooled);
    for (int i = 0; i < program->values; i++)
        Py_XDECREF(values[i]);
    Py_DECREF(edges);
    return failed ? -1 : 1;
}

static PyObject *
call_program(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Program *program = (Program *)self;
    if (PyVectorcall_NARGS(nargsf) != 3 || names != NULL || !Py_IS_TYPE(args[0], Entry) || !PyDict_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "a program takes an entry, whether to keep it, and the cotangents");
        return NULL;
    }
    int done = run_program(program, args[0], PyObject_IsTrue(args[1]), args[2]);
    if (done < 0)
        return NULL;
    return done ? Py_NewRef(Py_None) : PyObject_Vectorcall(program->otherwise, args, 3, NULL);
}

static int
read_numbers(PyObject *tuple, int *numbers_, int *count_, int most)
{
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > MOST_ARGUMENTS) {
        PyErr_Format(PyExc_ValueError, "not a tuple of at most %d numbers", MOST_ARGUMENTS);
        return -1;
    }
    *count_ = (int)PyTuple_GET_SIZE(tuple);
    for (int i = 0; i < *count_; i++) {
        numbers_[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(tuple, i));
        if (numbers_[i] >= most) {
            PyErr_SetString(PyExc_ValueError, "no such value");
            return -1;
        }
    }
    return PyErr_Occurred() ? -1 : 0;
}

static int
read_instruction(Instruction *step, PyObject *tuple, int values)
{
    PyObject *op, *kernel, *args, *attrs, *dropped;
    if (!PyArg_ParseTuple(tuple, "OOOOiOi", &op, &kernel, &args, &attrs, &step->out, &dropped, &step->into)
        || read_numbers(args, step->args, &step->count, values) < 0
        || read_numbers(dropped, step->dropped, &step->dropped_count, values) < 0)
        return -1;
    step->op = op == Py_None ? NULL : Py_NewRef(op);
    step->kernel = kernel == Py_None ? NULL : Py_NewRef(kernel);
    step->attrs = attrs == Py_None ? NULL : Py_NewRef(attrs);
    return 0;
}

static PyObject *
new_program(PyTypeObject *type, PyObject *args, PyObject *options)
{
    static char *words[] = {"otherwise", "constants", "typed", "conforms", "saved", "values", "code", NULL};
    PyObject *otherwise, *constants, *code;
    int typed, conforms, saved, values;
    if (!PyArg_ParseTupleAndKeywords(args, options, "OO!ppiiO!", words, &otherwise, &PyTuple_Type, &constants, &typed,
                                     &conforms, &saved, &values, &PyTuple_Type, &code))
        return NULL;
    if (values > MOST_VALUES || saved >= values || PyTuple_GET_SIZE(constants) > MOST_ARGUMENTS * 4) {
        PyErr_Format(PyExc_ValueError, "%d values, where at most %d can be", values, MOST_VALUES);
        return NULL;
    }
    Program *program = (Program *)type->tp_alloc(type, 0);
    if (program == NULL)
        return NULL;
    program->vectorcall = call_program;
    program->otherwise = Py_NewRef(otherwise);
    program->constants = Py_NewRef(constants);
    program->typed = typed;
    program->conforms = conforms;
    program->saved = saved;
    program->values = values;
    program->code = PyMem_Calloc((size_t)PyTuple_GET_SIZE(code) + 1, sizeof(Instruction));
    for (Py_ssize_t i = 0; program->code != NULL && i < PyTuple_GET_SIZE(code); i++) {
        program->count = i + 1;
        if (read_instruction(&program->code[i], PyTuple_GET_ITEM(code, i), values) < 0)
            break;
    }
    if (program->code == NULL || PyErr_Occurred()) {
        Py_DECREF(program);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    return (PyObject *)program;
}

static int
traverse_program(PyObject *self, visitproc visit, void *arg)
{
    Program *program = (Program *)self;
    Py_VISIT(program->otherwise);
    Py_VISIT(program->constants);
    return 0;
}

static void
free_program(PyObject *self)
{
    Program *program = (Program *)self;
    PyObject_GC_UnTrack(self);
    Py_XDECREF(program->otherwise);
    Py_XDECREF(program->constants);
    for (Py_ssize_t i = 0; i < program->count; i++) {
        Py_XDECREF(program->code[i].op);
        Py_XDECREF(program->code[i].kernel);
        Py_XDECREF(program->code[i].attrs);
    }
    PyMem_Free(program->code);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject ProgramType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynamic._native.Program",
    .tp_doc = PyDoc_STR("A pullback as kernel calls: program(entry, keep, cotangents)."),
    .tp_basicsize = sizeof(Program),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Program, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = new_program,
    .tp_dealloc = free_program,
    .tp_traverse = traverse_program,
};

/* history and walk ------------------------------------------------------------------------------------------------- */

typedef struct {
    long long sequence;
    PyObject *entry;
} Dated;

static int
earlier(const void *x, const void *y)
{
    long long a = ((const Dated *)x)->sequence, b = ((const Dated *)y)->sequence;
    return (a > b) - (a < b);
}

static int
sort_by_sequence(PyObject *entries)
{
    Py_ssize_t size = PyList_GET_SIZE(entries);
    Dated *dated = PyMem_New(Dated, size + 1);
    if (dated == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < size; i++) {
        dated[i].entry = PyList_GET_ITEM(entries, i);
        dated[i].sequence = PyLong_AsLongLong(SLOT(dated[i].entry, at.sequence));
    }
    qsort(dated, (size_t)size, sizeof(Dated), earlier);
    for (Py_ssize_t i = 0; i < size; i++)
        PyList_SET_ITEM(entries, i, dated[i].entry);
    PyMem_Free(dated);
    return PyErr_Occurred() ? -1 : 0;
}

static int
visit(PyObject *edge, PyObject *seen, PyObject *entries, PyObject *leaves)
{
    if (edge == Py_None)
        return 0;
    Py_ssize_t before = PySet_GET_SIZE(seen);
    if (PySet_Add(seen, edge) < 0)
        return -1;
    if (PySet_GET_SIZE(seen) == before)
        return 0;
    return Py_IS_TYPE(edge, Entry) ? PyList_Append(entries, edge) : PySet_Add(leaves, edge);
}

/* history(roots): every entry that led to the roots, the latest last, and every leaf. */
static PyObject *
history(PyObject *Py_UNUSED(module), PyObject *roots)
{
    PyObject *entries = PyList_New(0), *leaves = PySet_New(NULL), *seen = PySet_New(NULL), *result = NULL;
    PyObject *first = PySequence_Fast(roots, "history takes edges");
    if (entries == NULL || leaves == NULL || seen == NULL || first == NULL)
        goto done;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(first); i++)
        if (visit(PySequence_Fast_GET_ITEM(first, i), seen, entries, leaves) < 0)
            goto done;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries); i++) {  /* which grows meanwhile */
        PyObject *edges = Py_NewRef(SLOT(PyList_GET_ITEM(entries, i), at.edges));
        PyObject *listed = PySequence_Fast(edges, "edges are a sequence");
        int failed = listed == NULL;
        for (Py_ssize_t j = 0; !failed && j < PySequence_Fast_GET_SIZE(listed); j++)
            failed = visit(PySequence_Fast_GET_ITEM(listed, j), seen, entries, leaves);
        Py_XDECREF(listed);
        Py_DECREF(edges);
        if (failed)
            goto done;
    }
    if (sort_by_sequence(entries) == 0)
        result = PyTuple_Pack(2, entries, leaves);
done:
    Py_XDECREF(entries);
    Py_XDECREF(leaves);
    Py_XDECREF(seen);
    Py_XDECREF(first);
    return result;
}

static int
needs_attention(PyObject *entry)
{
    PyObject *latest = SLOT(clock_, at.latest), *hooks = SLOT(entry, at.hooks);
    if (!PyTuple_CheckExact(SLOT(entry, at.saved)) || (hooks != Py_None && PyObject_IsTrue(hooks)))
        return 1;
    return PyLong_AsLongLong(SLOT(entry, at.sequence)) < PyLong_AsLongLong(latest);
}

static int
pass_back(PyObject *entry, PyObject *cotangents, PyObject *keep)
{
    PyObject *apply = SLOT(SLOT(entry, at.pullback), at.apply);
    if (Py_IS_TYPE(apply, &ProgramType)) {
        int done = run_program((Program *)apply, entry, keep == Py_True, cotangents);
        if (done)
            return done < 0 ? -1 : 0;
    }
    PyObject *args[] = {entry, keep, cotangents};
    Py_INCREF(apply);
    PyObject *result = PyObject_Vectorcall(apply, args, 3, NULL);
    Py_DECREF(apply);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

static int
reach_leaves(PyObject *reached, PyObject *cotangents, PyObject *hooked)
{
    Py_ssize_t position = 0;
    PyObject *edge, *cotangent;
    while (PyDict_Next(cotangents, &position, &edge, &cotangent)) {
        PyObject *hooks = SLOT(edge, Py_IS_TYPE(edge, Leaf) ? at.leaf_hooks : at.hooks);
        PyObject *both[] = {edge, cotangent}, *value = cotangent;
        if (hooks != Py_None && PyObject_IsTrue(hooks))
            value = PyObject_Vectorcall(hooked, both, 2, NULL);
        if (value == NULL || PyDict_SetItem(reached, edge, value) < 0)
            return -1;
        if (value != cotangent)
            Py_DECREF(value);
    }
    return 0;
}

/* walk(entries, cotangents, wanted, keep, attend, hooked): visit the entries, the latest first; the cotangents of the
   leaves, and of the entries that are wanted. */
static PyObject *
walk(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count_)
{
    if (count_ != 6 || !PyList_CheckExact(args[0]) || !PyDict_CheckExact(args[1]) || !PyAnySet_CheckExact(args[2])
        || !PyBool_Check(args[3])) {
        PyErr_SetString(PyExc_TypeError, "walk takes entries, cotangents, wanted, keep, attend and hooked");
        return NULL;
    }
    PyObject *entries = args[0], *cotangents = args[1], *wanted = args[2], *attend = args[4];
    PyObject *reached = PyDict_New();
    while (reached != NULL && PyList_GET_SIZE(entries) != 0) {
        Py_ssize_t last = PyList_GET_SIZE(entries) - 1;
        PyObject *entry = Py_NewRef(PyList_GET_ITEM(entries, last));
        int failed = PySequence_DelItem(entries, last);
        int arrived = failed ? 0 : PyDict_Contains(cotangents, entry);
        if (arrived > 0 && needs_attention(entry)) {
            PyObject *both[] = {entry, cotangents};
            PyObject *done = PyObject_Vectorcall(attend, both, 2, NULL);
            Py_XDECREF(done);
            failed = done == NULL;
        }
        if (arrived > 0 && !failed && PySet_GET_SIZE(wanted) != 0 && PySet_Contains(wanted, entry) > 0)
            failed = PyDict_SetItem(reached, entry, PyDict_GetItem(cotangents, entry));
        if (arrived > 0 && !failed)
            failed = pass_back(entry, cotangents, args[3]);
        Py_DECREF(entry);
        if (failed || arrived < 0)
            Py_CLEAR(reached);
    }
    if (reached != NULL && reach_leaves(reached, cotangents, args[5]) < 0)
        Py_CLEAR(reached);
    return reached;
}

/* The module ------------------------------------------------------------------------------------------------------- */

/* connect(**names): lend what the loops work with. */
static PyObject *
connect(PyObject *Py_UNUSED(module), PyObject *args, PyObject *options)
{
    static char *words[] = {"tensor", "entry", "leaf", "pullback", "clock", "ndarray", "asarray", "add", "cast",
                            "unbroadcast", "detours", "runners", "least", "numbers", "broken", "count",
                            "nothing", "watchers", "reduce", "add_op", "memory", "samples", NULL};
    PyObject *pullback, *tensor, *entry, *leaf, *array, *memory, *samples, *sample, *shape, *dtype, *base;
    int number, itemsize, writeable;
    if (!PyArg_ParseTupleAndKeywords(args, options, "OOOOOOOOOOO!O!O!OOOO!O!OOOO!", words, &tensor, &entry, &leaf, &pullback,
                                     &clock_, &array, &asarray, &add, &cast, &unbroadcast, &PySet_Type, &detours,
                                     &PyList_Type, &runners, &PyList_Type, &least, &numbers, &broken, &count,
                                     &PyDict_Type, &nothing, &PyList_Type, &watchers, &reduce, &add_op, &memory, &PyTuple_Type, &samples))
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(samples); i++) {
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(samples, i), "OO!OOiip", &sample, &PyTuple_Type, &shape, &dtype, &base,
                              &number, &itemsize, &writeable))
            return NULL;
        if (!is_as_told(sample, shape, dtype, base, number, itemsize, writeable)) {
            PyErr_SetString(PyExc_ImportError, "arrays of this NumPy are not laid out as those that this was written for");
            return NULL;
        }
    }
    struct {
        PyObject *type;
        const char *name;
        Py_ssize_t *offset;
    } slots[] = {
        {tensor, "_data", &at.data},         {tensor, "_edge", &at.edge},
        {tensor, "grad", &at.grad},          {entry, "pullback", &at.pullback},
        {entry, "attrs", &at.attrs},         {entry, "edges", &at.edges},
        {entry, "saved", &at.saved},         {entry, "shape", &at.shape},
        {entry, "dtype", &at.dtype},         {entry, "sequence", &at.sequence},
        {entry, "hooks", &at.hooks},         {leaf, "shape", &at.leaf_shape},
        {leaf, "dtype", &at.leaf_dtype},     {leaf, "tensor", &at.leaf_tensor},
        {leaf, "hooks", &at.leaf_hooks},     {leaf, "closed", &at.leaf_closed},
        {pullback, "apply", &at.apply},
        {(PyObject *)Py_TYPE(clock_), "latest", &at.latest},
        {(PyObject *)Py_TYPE(clock_), "rewritten", &at.rewritten},
    };
    for (size_t i = 0; i < Py_ARRAY_LENGTH(slots); i++)
        if ((*slots[i].offset = offset_of(slots[i].type, slots[i].name)) < 0)
            return NULL;
    PyObject *held[] = {tensor, entry, leaf, clock_, array, asarray, add, cast, unbroadcast, detours, runners, least,
                        numbers, broken, count, nothing, watchers, reduce, add_op, memory};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(held); i++)
        Py_INCREF(held[i]);  /* for as long as the process lives */
    Tensor = (PyTypeObject *)tensor;
    Entry = (PyTypeObject *)entry;
    Leaf = (PyTypeObject *)leaf;
    ndarray = (PyTypeObject *)array;
    Memory = (PyTypeObject *)memory;
    Py_RETURN_NONE;
}

/* The arguments of a transform: an array of floats as a tensor that requires a gradient, and its leaf. */
static PyObject *
variable_of(PyObject *array)
{
    PyObject *tensor = Tensor->tp_alloc(Tensor, 0), *leaf = Leaf->tp_alloc(Leaf, 0);
    if (tensor != NULL && leaf != NULL) {
        SLOT(tensor, at.data) = Py_NewRef(array);
        SLOT(tensor, at.edge) = Py_NewRef(leaf);
        SLOT(tensor, at.grad) = Py_NewRef(Py_None);
        SLOT(leaf, at.leaf_tensor) = PyWeakref_NewRef(tensor, NULL);
        SLOT(leaf, at.leaf_shape) = shape_of(array);
        SLOT(leaf, at.leaf_dtype) = Py_NewRef(ARRAY(array)->dtype);
        SLOT(leaf, at.leaf_hooks) = Py_NewRef(Py_None);
        SLOT(leaf, at.leaf_closed) = Py_NewRef(Py_False);
    }
    Py_XDECREF(leaf);
    if (PyErr_Occurred())
        Py_CLEAR(tensor);
    return tensor;
}

static int
add_variable(PyObject *array, PyObject *tensors, PyObject *edges)  /* 0 where it is no array of floats */
{
    if (!Py_IS_TYPE(array, ndarray) || !is_floating(array))
        return 0;
    PyObject *tensor = variable_of(array);
    int failed = tensor == NULL || PyList_Append(tensors, tensor) < 0
                 || PyList_Append(edges, SLOT(tensor, at.edge)) < 0;
    Py_XDECREF(tensor);
    return failed ? -1 : 1;
}

/* A container of variables laid out like an argument: a new reference, or NULL, without an error where it is no simple one;
   `keys` are those of a dict, or None for an array. */
static PyObject *
differentiated(PyObject *arg, PyObject *tensors, PyObject *edges, PyObject **keys)
{
    Py_ssize_t position = 0, first = PyList_GET_SIZE(tensors);
    PyObject *key, *value, *container;
    *keys = Py_None;
    if (!PyDict_CheckExact(arg)) {
        if (add_variable(arg, tensors, edges) <= 0)
            return NULL;
        *keys = Py_NewRef(Py_None);
        return Py_NewRef(PyList_GET_ITEM(tensors, first));
    }
    while (PyDict_Next(arg, &position, &key, &value))
        if (add_variable(value, tensors, edges) <= 0)
            return NULL;
    if ((container = PyDict_New()) == NULL)
        return NULL;
    for (position = 0; PyDict_Next(arg, &position, &key, &value); first++)
        if (PyDict_SetItem(container, key, PyList_GET_ITEM(tensors, first)) < 0) {
            Py_DECREF(container);
            return NULL;
        }
    *keys = PySequence_Tuple(arg);
    return container;
}

static PyObject *
constant(PyObject *arg)  /* an array as a tensor, so that operators on it are ops; NULL without an error for anything else */
{
    if (!Py_IS_TYPE(arg, ndarray) || strchr("biuf", DTYPE(ARRAY(arg)->dtype)->kind) == NULL)
        return NULL;
    PyObject *tensor = Tensor->tp_alloc(Tensor, 0);
    if (tensor != NULL) {
        SLOT(tensor, at.data) = Py_NewRef(arg);
        SLOT(tensor, at.edge) = Py_NewRef(Py_None);
        SLOT(tensor, at.grad) = Py_NewRef(Py_None);
    }
    return tensor;
}

/* arguments(args, positions): the arguments as tensors, those in `positions` as variables; the variables and their edges,
   and the keys of each argument that is differentiated. None where an argument is neither an array nor, differentiated,
   a dict of arrays of floats. */
static PyObject *
arguments(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count_)
{
    if (count_ != 2 || !PyTuple_CheckExact(args[0]) || !PyList_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "arguments takes a tuple of arguments and a list of positions");
        return NULL;
    }
    Py_ssize_t size = PyTuple_GET_SIZE(args[0]), wanted = PyList_GET_SIZE(args[1]);
    PyObject *given = PyList_New(size), *tensors = PyList_New(0), *edges = PyList_New(0), *keys = PyList_New(wanted);
    int simple = given != NULL && tensors != NULL && edges != NULL && keys != NULL;
    for (Py_ssize_t i = 0; simple && i < wanted; i++) {
        Py_ssize_t position = PyLong_AsSsize_t(PyList_GET_ITEM(args[1], i));
        PyObject *keys_of_one, *container;
        container = differentiated(PyTuple_GET_ITEM(args[0], position), tensors, edges, &keys_of_one);
        simple = container != NULL && keys_of_one != NULL;
        if (simple)
            PyList_SET_ITEM(keys, i, keys_of_one);
        if (container != NULL)
            PyList_SET_ITEM(given, position, container);
    }
    for (Py_ssize_t i = 0; simple && i < size; i++)
        if (PyList_GET_ITEM(given, i) == NULL) {
            PyObject *tensor = constant(PyTuple_GET_ITEM(args[0], i));
            PyList_SET_ITEM(given, i, tensor);
            simple = tensor != NULL;
        }
    PyObject *result = simple ? PyTuple_Pack(4, given, tensors, edges, keys) : NULL;
    Py_XDECREF(given);
    Py_XDECREF(tensors);
    Py_XDECREF(edges);
    Py_XDECREF(keys);
    return simple || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

/* grouped(keys, values): the values in the containers that `arguments` found, one for each that is differentiated. */
static PyObject *
grouped(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count_)
{
    if (count_ != 2 || !PyList_CheckExact(args[0]) || !PyList_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "grouped takes a list of keys and a list of values");
        return NULL;
    }
    Py_ssize_t size = PyList_GET_SIZE(args[0]), next = 0;
    PyObject *result = PyTuple_New(size);
    for (Py_ssize_t i = 0; result != NULL && i < size; i++) {
        PyObject *keys = PyList_GET_ITEM(args[0], i), *container;
        if (keys == Py_None)
            container = Py_NewRef(PyList_GET_ITEM(args[1], next++));
        else
            container = PyDict_New();
        for (Py_ssize_t j = 0; keys != Py_None && container != NULL && j < PyTuple_GET_SIZE(keys); j++)
            if (PyDict_SetItem(container, PyTuple_GET_ITEM(keys, j), PyList_GET_ITEM(args[1], next++)) < 0)
                Py_CLEAR(container);
        if (container == NULL)
            Py_CLEAR(result);
        else
            PyTuple_SET_ITEM(result, i, container);
    }
    return result;
}

/* close(variables): nobody can ask for their gradients in any further graph. */
static PyObject *
close_(PyObject *Py_UNUSED(module), PyObject *tensors)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tensors); i++) {
        PyObject *tensor = PyList_GET_ITEM(tensors, i), *edge = SLOT(tensor, at.edge);
        if (Py_IS_TYPE(edge, Leaf)) {
            put(edge, at.leaf_closed, Py_NewRef(Py_True));
            put(tensor, at.edge, Py_NewRef(Py_None));
        }
    }
    Py_RETURN_NONE;
}

/* collect(found, edges, owned, zeros): the arrays that arrived at the edges, none of which anybody else sees, and
   zeros(edge) where nothing arrived. owned(array, given) copies an array that is not its own, or is given already. */
static int
is_listed(PyObject *list, PyObject *item)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++)
        if (PyList_GET_ITEM(list, i) == item)
            return 1;
    return 0;
}

static PyObject *
own(PyObject *array, PyObject *before, PyObject *owned)
{
    int twice = Py_REFCNT(array) > 1 && is_listed(before, array);  /* `found` has one reference */
    if (!twice && Py_IS_TYPE(array, ndarray) && ARRAY(array)->base == NULL && ARRAY(array)->flags & WRITEABLE)
        return Py_NewRef(array);
    PyObject *given = PySet_New(NULL), *identity = PyLong_FromVoidPtr(array), *result = NULL;
    if (given != NULL && identity != NULL && (!twice || PySet_Add(given, identity) == 0)) {
        PyObject *args[] = {array, given};
        result = PyObject_Vectorcall(owned, args, 2, NULL);
    }
    Py_XDECREF(given);
    Py_XDECREF(identity);
    return result;
}

static PyObject *
collect(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count_)
{
    if (count_ != 4 || !PyDict_CheckExact(args[0]) || !PyList_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "collect takes a dict, a list of edges, who copies and who makes zeros");
        return NULL;
    }
    PyObject *arrays = PyList_New(0);
    for (Py_ssize_t i = 0; arrays != NULL && i < PyList_GET_SIZE(args[1]); i++) {
        PyObject *edge = PyList_GET_ITEM(args[1], i), *array = PyDict_GetItemWithError(args[0], edge);
        if (array == NULL)
            array = PyErr_Occurred() ? NULL : PyObject_CallOneArg(args[3], edge);
        else
            array = own(array, arrays, args[2]);
        if (array == NULL || PyList_Append(arrays, array) < 0)
            Py_CLEAR(arrays);
        Py_XDECREF(array);
    }
    return arrays;
}

/* record(whether): let this thread record from now on, or not. */
static PyObject *
record_(PyObject *Py_UNUSED(module), PyObject *whether)
{
    is_idle = !PyObject_IsTrue(whether);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"record", record_, METH_O, NULL},
    {"arguments", (PyCFunction)(void (*)(void))arguments, METH_FASTCALL, NULL},
    {"grouped", (PyCFunction)(void (*)(void))grouped, METH_FASTCALL, NULL},
    {"close", close_, METH_O, NULL},
    {"collect", (PyCFunction)(void (*)(void))collect, METH_FASTCALL, NULL},
    {"connect", (PyCFunction)(void (*)(void))connect, METH_VARARGS | METH_KEYWORDS, NULL},
    {"history", history, METH_O, NULL},
    {"walk", (PyCFunction)(void (*)(void))walk, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dynamic._native",
    .m_doc = PyDoc_STR("The inner loops of the tape, compiled; see the file that this is made of."),
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC
PyInit__native(void)
{
    if ((out_only = Py_BuildValue("(s)", "out")) == NULL)
        return NULL;
    RecordType.tp_descr_get = bind_record;
    PyObject *module = PyModule_Create(&module_definition);
    if (module == NULL || PyModule_AddType(module, &RecordType) < 0 || PyModule_AddType(module, &ProgramType) < 0)
        Py_CLEAR(module);
    return module;
}
