/* Record: an op on tensors and numbers, run, and recorded where a gradient will need it. */

#include "loops.h"

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
    Want wants[1 << MOST_INPUTS];
} Record;

static PyObject *
generally(Record *record, PyObject *const *args, Py_ssize_t count_, PyObject *names)
{
    if (!record->swapped || count_ != 2 || names != NULL)
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
    PyObject *edge = wanted ? entry_of(record, wanted, arrays, edges, out, attrs, pullback, beside)
                            : Py_NewRef(Py_None);
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

static PyObject *
run(const Record *record, PyObject *const *arrays, PyObject *attrs)
{
    return made(PyDict_GET_SIZE(attrs) == 0
                    ? PyObject_Vectorcall(record->kernel, arrays, (size_t)record->arity, NULL)
                    : PyObject_VectorcallDict(record->kernel, arrays, (size_t)record->arity, attrs));
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

int
must_stand_aside(void)  /* while this holds anything, ops go to the interpreter */
{
    return PySet_GET_SIZE(detours) != 0;
}

/* inplace.precedes_change(edge) */
int
precedes_change(PyObject *edge)
{
    return Py_IS_TYPE(edge, Entry)
           && PyLong_AsLongLong(SLOT(edge, at.sequence)) < PyLong_AsLongLong(SLOT(clock_, at.rewritten));
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
        out = run(record, &array, PyTuple_GET_ITEM(given, 0));
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
        if (positional == 0 || !Py_IS_TYPE(args[0], Tensor) || must_stand_aside()
            || precedes_change(SLOT(args[0], at.edge)))
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
            if (precedes_change(edges[i]))
                goto aside;
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
        out = run(record, arrays, nothing);
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
read_field(Field *field, PyObject *pair, int arity)  /* (source, name or None) */
{
    PyObject *name;
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
        PyErr_SetString(PyExc_TypeError, "a field is a pair of a source and a name");
        return -1;
    }
    if (!PyArg_ParseTuple(pair, "iO", &field->source, &name))
        return -1;
    if (field->source < 0 || field->source > 3 || (field->source < 2 && field->source >= arity)) {
        PyErr_Format(PyExc_ValueError, "no source %d of what is saved", field->source);
        return -1;
    }
    field->name = name == Py_None ? NULL : Py_NewRef(name);
    field->is_shape = field->source < 3 && PyUnicode_Check(name)
                      && PyUnicode_CompareWithASCIIString(name, "shape") == 0;
    return 0;
}

static int
read_want(Record *record, PyObject *key, PyObject *value)  /* wanted: (fields, pullback, the same beside a number) */
{
    long wanted = PyLong_AsLong(key);
    PyObject *fields, *pullback, *beside;
    if (PyErr_Occurred())
        return -1;
    if (wanted < 1 || wanted >= 1 << record->arity) {
        PyErr_Format(PyExc_ValueError, "no such set of inputs: %ld", wanted);
        return -1;
    }
    if (!PyTuple_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "what is wanted is told by a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(value, "O!OO", &PyTuple_Type, &fields, &pullback, &beside))
        return -1;
    Want *want = &record->wants[wanted];
    want->pullback = Py_NewRef(pullback);
    want->beside = Py_NewRef(beside);
    record->ruled |= (int)wanted;
    if ((want->fields = PyMem_Calloc((size_t)PyTuple_GET_SIZE(fields) + 1, sizeof(Field))) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (; want->count < PyTuple_GET_SIZE(fields); want->count++)
        if (read_field(&want->fields[want->count], PyTuple_GET_ITEM(fields, want->count), record->arity) < 0)
            return -1;
    return 0;
}

static PyObject *
new_record(PyTypeObject *type, PyObject *args, PyObject *options)
{
    static char *words[] = {"op", "kernel", "general", "arity", "wants", "prepared", "swapped", "by_axes",
                            "takes_numbers", NULL};
    PyObject *op, *kernel, *general, *wants, *prepared;
    int arity, swapped, by_axes, takes_numbers;
    if (!PyArg_ParseTupleAndKeywords(args, options, "OOOiO!Oppp", words, &op, &kernel, &general, &arity,
                                     &PyDict_Type, &wants, &prepared, &swapped, &by_axes, &takes_numbers))
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
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(wants, &position, &key, &value))
        if (read_want(record, key, value) < 0) {
            Py_DECREF(record);
            return NULL;
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


static PyObject *
bind_record(PyObject *self, PyObject *instance, PyObject *Py_UNUSED(type))
{
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

/* To whoever looks, it is the op: `help(Tensor.__add__)`. */
static PyObject *
name_of(PyObject *self, void *Py_UNUSED(closure))
{
    return PyObject_GetAttrString(((Record *)self)->op, "__name__");
}

static PyObject *
doc_of(PyObject *self, void *Py_UNUSED(closure))
{
    return PyObject_GetAttrString(((Record *)self)->op, "__doc__");
}

static PyObject *
signature_of(PyObject *self, void *Py_UNUSED(closure))
{
    return PyObject_GetAttrString(((Record *)self)->op, "__signature__");
}

static PyGetSetDef attributes[] = {
    {"__name__", name_of, NULL, NULL, NULL},
    {"__doc__", doc_of, NULL, NULL, NULL},
    {"__signature__", signature_of, NULL, NULL, NULL},
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
