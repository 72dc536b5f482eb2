/* Bind: an op on inputs that are ready for its kernel, run, and recorded where a gradient will need it. */

#include "inputs.h"

#define MOST_WANTS 256

enum { RESULT = -1, ATTRIBUTES = -2, SHAPES = -3, CONSTANT = -4 };

typedef struct {
    int source;      /* the number of an input, or one of the above */
    int is_shape;    /* of what is asked for most often */
    PyObject *name;  /* of an attribute of it; the constant; or NULL */
} Field;

enum { A_NUMBER = INT_MIN, WHATEVER };  /* in place of the number of axes of an input, or its complement */

/* What the pullback of an op depends on, in words, which are soon compared: the inputs that want a gradient, as a bit set; how
   many inputs there are; and the number of axes of each, as its complement where an array is no tensor. */
enum { WANTED, COUNT, NDIMS };

typedef struct {
    int64_t words[NDIMS + MOST_INPUTS];
} Kind;

static size_t
bytes_of(const Kind *kind)
{
    return (size_t)(NDIMS + kind->words[COUNT]) * sizeof(int64_t);
}

typedef struct Want {
    struct Want *next;
    Kind kind;
    PyObject *pullback;
    Py_ssize_t count;
    Field *fields;  /* of what is saved */
} Want;

struct Recorder {
    PyObject_HEAD
    PyObject *kernel;
    int arity;       /* -1: any number of inputs */
    PyObject *find;  /* find(wanted, count, ndims): the pullback, and the fields that it saves */
    uint64_t ruled;  /* the inputs that have a rule, as a bit set */
    int is_elementwise;
    char layout;     /* the first letter of that of the op: graphs/op.py */
    Py_ssize_t known;
    Want *wants;
};

/* Numbers ----------------------------------------------------------------------------------------------------------- */

/* A Python number among the inputs as the array that it is beside the others: see promotion.py. */
static PyObject *
typed(const Inputs *inputs, PyObject *number)
{
    Py_ssize_t size = 2;
    PyObject *key = PyTuple_New(2 + inputs->count - inputs->numbers);
    if (key == NULL)
        return NULL;
    PyTuple_SET_ITEM(key, 0, Py_NewRef(number));
    PyTuple_SET_ITEM(key, 1, Py_NewRef((PyObject *)Py_TYPE(number)));
    for (Py_ssize_t i = 0; i < inputs->count; i++)
        if (!inputs->is_number[i])
            PyTuple_SET_ITEM(key, size++, dtype_number(inputs->arrays[i]));
    PyObject *found = PyErr_Occurred() ? NULL : as_array(PyObject_GetItem(numbers, key));
    Py_DECREF(key);
    return found;
}

static int
type_numbers(Inputs *inputs)  /* -1 with an error set */
{
    for (Py_ssize_t i = 0; i < inputs->count; i++) {
        PyObject *array = inputs->is_number[i] ? typed(inputs, inputs->arrays[i]) : Py_NewRef(inputs->arrays[i]);
        if (array == NULL)
            return -1;
        Py_SETREF(inputs->arrays[i], array);
    }
    return 0;
}

/* What is kept ----------------------------------------------------------------------------------------------------- */

static PyObject *
shapes_of(const Inputs *inputs)
{
    PyObject *shapes = PyTuple_New(inputs->count);
    for (Py_ssize_t i = 0; shapes != NULL && i < inputs->count; i++) {
        PyObject *shape = shape_of(inputs->arrays[i]);
        if (shape == NULL)
            Py_CLEAR(shapes);
        else
            PyTuple_SET_ITEM(shapes, i, shape);
    }
    return shapes;
}

static PyObject *
value_of(const Field *field, const Inputs *inputs, PyObject *out, PyObject *attrs)
{
    if (field->source >= RESULT) {
        PyObject *array = field->source == RESULT ? out : inputs->arrays[field->source];
        if (field->name == NULL)
            return Py_NewRef(array);
        return field->is_shape ? shape_of(array) : PyObject_GetAttr(array, field->name);
    }
    if (field->source == ATTRIBUTES)
        return PyObject_GetItem(attrs, field->name);
    return field->source == SHAPES ? shapes_of(inputs) : Py_NewRef(field->name);
}

static PyObject *
saved_values(const Want *want, const Inputs *inputs, PyObject *out, PyObject *attrs)
{
    PyObject *saved = PyTuple_New(want->count);
    for (Py_ssize_t i = 0; saved != NULL && i < want->count; i++) {
        PyObject *value = value_of(&want->fields[i], inputs, out, attrs);
        if (value == NULL)
            Py_CLEAR(saved);
        else
            PyTuple_SET_ITEM(saved, i, value);
    }
    return saved;
}

static void
free_want(Want *want)
{
    Py_XDECREF(want->pullback);
    for (Py_ssize_t i = 0; i < want->count; i++)
        Py_XDECREF(want->fields[i].name);
    PyMem_Free(want->fields);
    PyMem_Free(want);
}

static int
read_field(Field *field, PyObject *pair, int64_t count_)  /* (source, name or None) */
{
    PyObject *name;
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
        PyErr_SetString(PyExc_TypeError, "a field is a pair of a source and a name");
        return -1;
    }
    if (!PyArg_ParseTuple(pair, "iO", &field->source, &name))
        return -1;
    if (field->source < CONSTANT || field->source >= count_ || (field->source == ATTRIBUTES && name == Py_None)) {
        PyErr_Format(PyExc_ValueError, "no source %d of what is saved", field->source);
        return -1;
    }
    field->name = name == Py_None && field->source != CONSTANT ? NULL : Py_NewRef(name);
    field->is_shape = PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "shape") == 0;
    return 0;
}

static Want *
read_want(const Kind *kind, PyObject *told)  /* (pullback, fields) */
{
    PyObject *pullback, *fields;
    if (!PyTuple_Check(told)) {
        PyErr_SetString(PyExc_TypeError, "what is wanted is told by a tuple");
        return NULL;
    }
    if (!PyArg_ParseTuple(told, "OO!", &pullback, &PyTuple_Type, &fields))
        return NULL;
    Want *want = PyMem_Calloc(1, sizeof(Want));
    if (want == NULL || (want->fields = PyMem_Calloc((size_t)PyTuple_GET_SIZE(fields) + 1, sizeof(Field))) == NULL) {
        PyMem_Free(want);
        PyErr_NoMemory();
        return NULL;
    }
    memcpy(want->kind.words, kind->words, bytes_of(kind));
    want->pullback = Py_NewRef(pullback);
    for (; want->count < PyTuple_GET_SIZE(fields); want->count++)
        if (read_field(&want->fields[want->count], PyTuple_GET_ITEM(fields, want->count), kind->words[COUNT]) < 0) {
            free_want(want);
            return NULL;
        }
    return want;
}

static Want *
find_want(Recorder *recorder, const Kind *kind)
{
    if (recorder->known >= MOST_WANTS) {  /* as many kinds of calls as no program makes: the interpreter's */
        PyErr_SetString(PyExc_ValueError, "too many kinds of calls of one op");
        return NULL;
    }
    int count_ = (int)kind->words[COUNT], is_any = count_ != 0 && kind->words[NDIMS] == WHATEVER;
    PyObject *ndims = is_any ? Py_NewRef(Py_None) : PyTuple_New(count_);
    for (int i = 0; ndims != NULL && !is_any && i < count_; i++) {
        long ndim = (long)kind->words[NDIMS + i];
        PyTuple_SET_ITEM(ndims, i, ndim == A_NUMBER ? Py_NewRef(Py_None) : PyLong_FromLong(ndim));
    }
    PyObject *told = NULL;
    if (ndims != NULL)
        told = PyObject_CallFunction(recorder->find, "KiO", (unsigned long long)kind->words[WANTED], count_, ndims);
    Py_XDECREF(ndims);
    Want *want = told == NULL ? NULL : read_want(kind, told);
    Py_XDECREF(told);
    if (want != NULL) {
        want->next = recorder->wants;
        recorder->wants = want;
        recorder->known++;
    }
    return want;
}

static Want *
want_of(Recorder *recorder, const Inputs *inputs, uint64_t wanted)
{
    Kind kind;
    int is_any = recorder->is_elementwise && inputs->tensors == inputs->count;  /* as in tape.py */
    kind.words[WANTED] = (int64_t)wanted;
    kind.words[COUNT] = inputs->count;
    for (Py_ssize_t i = 0; i < inputs->count; i++) {
        int ndim = is_any || inputs->is_number[i] ? 0 : PyArray_NDIM(ARRAY(inputs->arrays[i]));
        if (recorder->is_elementwise)
            ndim = Py_MIN(ndim, 1);
        kind.words[NDIMS + i] = is_any                  ? WHATEVER
                                : inputs->is_number[i]  ? A_NUMBER
                                : inputs->is_tensor[i]  ? ndim
                                                        : ~ndim;
    }
    for (Want *want = recorder->wants; want != NULL; want = want->next)
        if (memcmp(want->kind.words, kind.words, bytes_of(&kind)) == 0)
            return want;
    return find_want(recorder, &kind);
}

/* The entry of an op that has just run: a new reference, or NULL with an error set. */
static PyObject *
entry_of(Recorder *recorder, uint64_t wanted, const Inputs *inputs, PyObject *out, PyObject *attrs)
{
    Want *want = want_of(recorder, inputs, wanted);
    PyObject *entry = want == NULL ? NULL : Entry->tp_alloc(Entry, 0);
    if (entry == NULL)
        return NULL;
    PyObject *ends = PyTuple_New(inputs->count);
    for (Py_ssize_t i = 0; ends != NULL && i < inputs->count; i++)
        PyTuple_SET_ITEM(ends, i, Py_NewRef(wanted >> i & 1 ? inputs->edges[i] : Py_None));
    SLOT(entry, at.edges) = ends;
    SLOT(entry, at.pullback) = Py_NewRef(want->pullback);
    SLOT(entry, at.saved) = saved_values(want, inputs, out, attrs);
    SLOT(entry, at.attrs) = Py_NewRef(attrs);
    SLOT(entry, at.shape) = shape_of(out);
    SLOT(entry, at.dtype) = Py_NewRef(dtype_of(out));
    SLOT(entry, at.hooks) = Py_NewRef(Py_None);
    SLOT(entry, at.sequence) = Py_TYPE(count)->tp_iternext(count);
    if (PyErr_Occurred())
        Py_CLEAR(entry);
    return entry;
}

/* Which inputs want a gradient, as a bit set: none of them needs an entry. */
static uint64_t
wanted_of(const Recorder *recorder, const Inputs *inputs, PyObject *out)
{
    uint64_t wanted = 0;
    if (is_idle() || !is_floating(out))
        return 0;
    for (Py_ssize_t i = 0; i < inputs->count; i++)
        if (inputs->edges[i] != Py_None)
            wanted |= (uint64_t)1 << i;
    return wanted & recorder->ruled;
}

PyObject *
recorded(Recorder *recorder, const Inputs *inputs, PyObject *out, PyObject *attrs)  /* takes the reference to `out` */
{
    uint64_t wanted = wanted_of(recorder, inputs, out);
    PyObject *edge = wanted ? entry_of(recorder, wanted, inputs, out, attrs) : Py_NewRef(Py_None);
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

/* Running ---------------------------------------------------------------------------------------------------------- */

static PyObject *
run(const Recorder *recorder, PyObject *const *arrays, Py_ssize_t count_, PyObject *attrs)
{
    if (recorder->layout == 'u' && count_ == 2 && disagree(arrays[0], arrays[1]))
        return made(PyObject_CallFunctionObjArgs(run_turned, recorder->kernel, arrays[0], arrays[1], NULL));
    PyObject *out = made(call_kernel(recorder->kernel, arrays, count_, PyDict_GET_SIZE(attrs) == 0 ? NULL : attrs));
    int is_laid = recorder->layout == 'i' || recorder->layout == 'r';
    return out == NULL || !is_laid ? out : lay(out, arrays, recorder->layout == 'i' ? count_ : 0);
}

PyObject *
run_and_record(Recorder *recorder, Inputs *inputs, PyObject *attrs)
{
    static int has_run;
    if (!has_run) {  /* and not at import, as a process that computes otherwise keeps the pages that it would keep */
        has_run = 1;
        keep_pages();
    }
    if (inputs->numbers && type_numbers(inputs) < 0)
        return NULL;
    PyObject *out = run(recorder, inputs->arrays, inputs->count, attrs);
    return out == NULL ? NULL : recorded(recorder, inputs, out, attrs);
}

/* bind(op, args, attrs): the interpreter for tensors. `general` is the same in Python. */
static PyObject *
bind(PyObject *general, PyObject *const *args, Py_ssize_t count_)
{
    if (count_ != 3 || PyDict_GET_SIZE(observers) || must_stand_aside() || !PyDict_CheckExact(args[2])
        || !(PyTuple_CheckExact(args[1]) || PyList_CheckExact(args[1])))
        return PyObject_Vectorcall(general, args, (size_t)count_, NULL);
    PyObject *recorder = PyObject_GetAttr(args[0], recorder_name);
    if (recorder == NULL)
        return NULL;
    PyObject *result = NULL;
    Py_ssize_t given = PySequence_Fast_GET_SIZE(args[1]);
    int is_ready = Py_IS_TYPE(recorder, &RecorderType)
                   && (((Recorder *)recorder)->arity < 0 || ((Recorder *)recorder)->arity == given);
    if (is_ready) {
        Inputs inputs;
        is_ready = hold(&inputs, PySequence_Fast_ITEMS(args[1]), given, 1);
        if (is_ready) {
            result = run_and_record((Recorder *)recorder, &inputs, args[2]);
            is_ready = !is_out_of_the_ordinary(result);
        }
        let_go(&inputs);
    }
    Py_DECREF(recorder);
    return is_ready ? result : PyObject_Vectorcall(general, args, (size_t)count_, NULL);
}

static PyMethodDef bind_definition = {
    "bind", (PyCFunction)(void (*)(void))bind, METH_FASTCALL,
    PyDoc_STR("bind(op, args, attrs): run an op at once, and record it when a gradient will need it."),
};

/* binder(general): the interpreter for tensors, and what it asks where anything is out of the ordinary. */
PyObject *
binder(PyObject *Py_UNUSED(module), PyObject *general)
{
    return PyCFunction_New(&bind_definition, general);
}

/* The type --------------------------------------------------------------------------------------------------------- */

static PyObject *
new_recorder(PyTypeObject *type, PyObject *args, PyObject *options)
{
    static char *words[] = {"kernel", "arity", "find", "ruled", "is_elementwise", "layout", NULL};
    PyObject *kernel, *find;
    unsigned long long ruled;
    int arity, is_elementwise;
    const char *layout = "any";
    if (!PyArg_ParseTupleAndKeywords(args, options, "OiOKp|s", words, &kernel, &arity, &find, &ruled,
                                     &is_elementwise, &layout))
        return NULL;
    Recorder *recorder = (Recorder *)type->tp_alloc(type, 0);
    if (recorder == NULL)
        return NULL;
    recorder->kernel = Py_NewRef(kernel);
    recorder->arity = arity;
    recorder->find = Py_NewRef(find);
    recorder->ruled = ruled;
    recorder->is_elementwise = is_elementwise;
    recorder->layout = layout[0];
    return (PyObject *)recorder;
}

static int
traverse_recorder(PyObject *self, visitproc visit, void *arg)
{
    Recorder *recorder = (Recorder *)self;
    Py_VISIT(recorder->kernel);
    Py_VISIT(recorder->find);
    for (Want *want = recorder->wants; want != NULL; want = want->next)
        Py_VISIT(want->pullback);
    return 0;
}

static void
free_recorder(PyObject *self)
{
    Recorder *recorder = (Recorder *)self;
    PyObject_GC_UnTrack(self);
    Py_XDECREF(recorder->kernel);
    Py_XDECREF(recorder->find);
    while (recorder->wants != NULL) {
        Want *want = recorder->wants;
        recorder->wants = want->next;
        free_want(want);
    }
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject RecorderType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynamic._native.Recorder",
    .tp_basicsize = sizeof(Recorder),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = new_recorder,
    .tp_dealloc = free_recorder,
    .tp_traverse = traverse_recorder,
};
