/* Record: an op as a user calls it, with its options worked out once. */

#include "inputs.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Recorder *recorder;
    PyObject *op, *general;
    PyObject *prepared;  /* of an op with options, or NULL */
    Calls calls;         /* what that has given */
    int arity;           /* -1: the inputs are one sequence */
    int swapped, takes_numbers;
    int alike;           /* an operator: operands of other dtypes are for `general`, which knows what they become */
} Record;

static PyObject *
generally(Record *record, PyObject *const *args, Py_ssize_t count_, PyObject *names)
{
    if (!record->swapped || count_ != 2 || names != NULL)
        return PyObject_Vectorcall(record->general, args, (size_t)count_, names);
    PyObject *turned[] = {args[1], args[0]};
    return PyObject_Vectorcall(record->general, turned, 2, names);
}

/* What `prepare` makes of the options beside such inputs: a new reference, or NULL, without an error where an option is no
   plain value. */
static PyObject *
attributes_for(Record *record, const Inputs *inputs, PyObject *const *options, Py_ssize_t positional, PyObject *names)
{
    PyObject *attrs = find_call(&record->calls, inputs, options, positional, names);
    if (attrs != NULL || !is_plain_call(inputs, options, positional, names))
        return attrs;
    Py_ssize_t total = positional + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
    PyObject **stack = PyMem_New(PyObject *, total + 1);
    PyObject *key = stack == NULL ? PyErr_NoMemory() : PyTuple_New(2 * inputs->count);
    for (Py_ssize_t i = 0; key != NULL && i < inputs->count; i++) {
        PyObject *shape = shape_of(inputs->arrays[i]), *dtype = dtype_number(inputs->arrays[i]);
        PyTuple_SET_ITEM(key, 2 * i, shape);
        PyTuple_SET_ITEM(key, 2 * i + 1, dtype);
        if (shape == NULL || dtype == NULL)
            Py_CLEAR(key);
    }
    if (key != NULL) {
        stack[0] = key;
        memcpy(stack + 1, options, (size_t)total * sizeof(PyObject *));
        attrs = PyObject_Vectorcall(record->prepared, stack, (size_t)positional + 1, names);
        Py_DECREF(key);
    }
    PyMem_Free(stack);
    if (attrs != NULL && !PyDict_CheckExact(attrs)) {
        PyErr_SetString(PyExc_TypeError, "attributes are a dict");
        Py_CLEAR(attrs);
    }
    if (attrs != NULL && keep_call(&record->calls, inputs, options, positional, names, attrs) < 0)
        Py_CLEAR(attrs);
    return attrs;
}

/* A call with options, or NULL: with no error set where the interpreter has to look at it. */
static PyObject *
call_with_options(Record *record, PyObject *const *args, Py_ssize_t positional, PyObject *names)
{
    PyObject *const *values = args, *result = NULL;
    Py_ssize_t count_ = record->arity, taken = record->arity;
    if (record->arity < 0) {
        taken = 1;
        if (positional == 0 || !(PyTuple_CheckExact(args[0]) || PyList_CheckExact(args[0])))
            return NULL;
        values = PySequence_Fast_ITEMS(args[0]);
        count_ = PySequence_Fast_GET_SIZE(args[0]);
    }
    if (positional < taken)
        return NULL;
    Inputs inputs;
    if (hold(&inputs, values, count_, 0) && inputs.tensors != 0) {
        PyObject *attrs = attributes_for(record, &inputs, args + taken, positional - taken, names);
        result = attrs == NULL ? NULL : run_and_record(record->recorder, &inputs, attrs);
        Py_XDECREF(attrs);
        is_out_of_the_ordinary(result);
    }
    let_go(&inputs);
    return result;
}

/* Whether all arrays are floats of one dtype, but for bools: what they are together, then, NumPy and PyTorch agree on. Not on
   float16 beside a number, which PyTorch may read in float32. */
static int
are_alike(const Inputs *inputs)
{
    int common = NPY_NOTYPE;
    for (Py_ssize_t i = 0; i < inputs->count; i++) {
        int type = inputs->is_number[i] ? NPY_BOOL : PyArray_TYPE(ARRAY(inputs->arrays[i]));
        if (type == NPY_BOOL || type == common)
            continue;
        if (common != NPY_NOTYPE || !PyTypeNum_ISFLOAT(type))
            return 0;
        common = type;
    }
    return common != NPY_NOTYPE && !(common == NPY_HALF && inputs->numbers);
}

static PyObject *
call_plainly(Record *record, PyObject *const *args)  /* in the same way */
{
    PyObject *turned[] = {args[record->arity - 1], args[0]}, *result = NULL;
    Inputs inputs;
    if (hold(&inputs, record->swapped ? turned : args, record->arity, record->takes_numbers) && inputs.tensors != 0
        && (!record->alike || are_alike(&inputs))) {
        result = run_and_record(record->recorder, &inputs, nothing);
        is_out_of_the_ordinary(result);
    }
    let_go(&inputs);
    return result;
}

static PyObject *
call_record(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Record *record = (Record *)self;
    Py_ssize_t positional = PyVectorcall_NARGS(nargsf);
    PyObject *result = NULL;
    if (must_stand_aside())
        ;
    else if (record->prepared != NULL)
        result = call_with_options(record, args, positional, names);
    else if (positional == record->arity && names == NULL)
        result = call_plainly(record, args);
    return result != NULL || PyErr_Occurred() ? result : generally(record, args, positional, names);
}

static PyObject *
new_record(PyTypeObject *type, PyObject *args, PyObject *options)
{
    static char *words[] = {"recorder", "op", "general", "arity", "prepared", "swapped", "takes_numbers", "alike", NULL};
    PyObject *recorder, *op, *general, *prepared;
    int arity, swapped, takes_numbers, alike;
    if (!PyArg_ParseTupleAndKeywords(args, options, "O!OOiOppp", words, &RecorderType, &recorder, &op, &general,
                                     &arity, &prepared, &swapped, &takes_numbers, &alike))
        return NULL;
    if (arity < -1 || arity == 0 || arity > MOST_INPUTS || (arity < 0 && prepared == Py_None)
        || (swapped && arity != 2)) {
        PyErr_Format(PyExc_ValueError, "no op of %d inputs can be called so", arity);
        return NULL;
    }
    Record *record = (Record *)type->tp_alloc(type, 0);
    if (record == NULL)
        return NULL;
    record->vectorcall = call_record;
    record->recorder = (Recorder *)Py_NewRef(recorder);
    record->op = Py_NewRef(op);
    record->general = Py_NewRef(general);
    record->prepared = prepared == Py_None ? NULL : Py_NewRef(prepared);
    record->arity = arity;
    record->swapped = swapped;
    record->takes_numbers = takes_numbers;
    record->alike = alike;
    return (PyObject *)record;
}

static int
traverse_record(PyObject *self, visitproc visit, void *arg)
{
    Record *record = (Record *)self;
    Py_VISIT(record->recorder);
    Py_VISIT(record->op);
    Py_VISIT(record->general);
    Py_VISIT(record->prepared);
    return visit_calls(&record->calls, visit, arg);
}

static void
free_record(PyObject *self)
{
    Record *record = (Record *)self;
    PyObject_GC_UnTrack(self);
    Py_XDECREF(record->recorder);
    Py_XDECREF(record->op);
    Py_XDECREF(record->general);
    Py_XDECREF(record->prepared);
    free_calls(&record->calls);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *
bind_record(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(type))
{
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

/* To whoever looks, it is the op: `help(Tensor.__add__)`. */
static PyObject *
of_op(PyObject *self, void *name)
{
    return PyObject_GetAttrString(((Record *)self)->op, name);
}

/* A function that has taken an op in has a name of its own: `lgamma` is the op `gammaln`. */
static PyObject *
of_function(PyObject *self, void *name)
{
    Record *record = (Record *)self;
    return PyObject_GetAttrString(PyFunction_Check(record->general) ? record->general : record->op, name);
}

static PyGetSetDef attributes[] = {
    {"__name__", of_function, NULL, NULL, "__name__"},
    {"__doc__", of_op, NULL, NULL, "__doc__"},
    {"__signature__", of_op, NULL, NULL, "__signature__"},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject RecordType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynamic._native.Record",
    .tp_basicsize = sizeof(Record),
    /* As of a Python function: found on a class, it takes the instance first. */
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(Record, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = new_record,
    .tp_dealloc = free_record,
    .tp_traverse = traverse_record,
    .tp_descr_get = bind_record,
    .tp_getset = attributes,
};
