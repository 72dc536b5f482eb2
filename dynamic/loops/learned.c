/* Learned: the pullback that was learned for such a cotangent and such saved values, found and run. */

#include "inputs.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *learn;      /* learn(entry, cotangent): what to run for such entries from now on */
    PyObject *otherwise;  /* the rules */
    int at_once;          /* or when such an entry is met again */
    Calls known;          /* None for what was met once */
} Learned;

/* What a pullback may depend on, as a call: of saved arrays their shapes and dtypes, and all else by value. */
typedef struct {
    Inputs inputs;  /* borrowed, arrays alone */
    PyObject *options[MOST_INPUTS + 2];
    Py_ssize_t count;
} Case;

static int
read_case(Case *one, PyObject *entry)  /* 0 where there is more than there is room for, or less than an entry has */
{
    PyObject *saved = SLOT(entry, at.saved);
    if (saved == NULL || SLOT(entry, at.shape) == NULL || SLOT(entry, at.dtype) == NULL)
        return 0;
    Py_ssize_t count_ = PyTuple_CheckExact(saved) ? PyTuple_GET_SIZE(saved) : 0;
    one->inputs.count = 0;
    one->count = 2;
    one->options[0] = SLOT(entry, at.shape);
    one->options[1] = SLOT(entry, at.dtype);
    if (count_ > MOST_INPUTS)
        return 0;
    for (Py_ssize_t i = 0; i < count_; i++) {
        PyObject *value = PyTuple_GET_ITEM(saved, i);
        int is_array = IS_ARRAY(value);
        if (is_array)
            one->inputs.arrays[one->inputs.count++] = value;
        one->options[one->count++] = is_array ? (PyObject *)&PyArray_Type : value;  /* and where the arrays are */
    }
    return 1;
}

/* What to run for an entry that was not met before, or once: a new reference. */
static PyObject *
met(Learned *learned, const Case *one, PyObject *entry, PyObject *cotangents, int before)
{
    int kept = before ? 1 : keep_call(&learned->known, &one->inputs, one->options, one->count, NULL, Py_None);
    if (kept < 0)
        return NULL;
    if (kept == 0 || !(before || learned->at_once))
        return Py_NewRef(learned->otherwise);
    PyObject *cotangent = PyDict_GetItemWithError(cotangents, entry), *both[] = {entry, cotangent};
    if (cotangent == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetObject(PyExc_KeyError, entry);
        return NULL;
    }
    Py_INCREF(cotangent);
    PyObject *run = PyObject_Vectorcall(learned->learn, both, 2, NULL);
    Py_DECREF(cotangent);
    if (run != NULL && keep_call(&learned->known, &one->inputs, one->options, one->count, NULL, run) < 0)
        Py_CLEAR(run);
    return run;
}

static PyObject *
call_learned(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Learned *learned = (Learned *)self;
    if (PyVectorcall_NARGS(nargsf) != 3 || names != NULL || !Py_IS_TYPE(args[0], Entry)
        || !PyDict_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "a pullback takes an entry, whether to keep it, and the cotangents");
        return NULL;
    }
    Case one;
    /* Learning may drop the last reference to these. */
    PyObject *saved = Py_XNewRef(SLOT(args[0], at.saved)), *shape = Py_XNewRef(SLOT(args[0], at.shape));
    PyObject *dtype = Py_XNewRef(SLOT(args[0], at.dtype)), *run;
    if (!read_case(&one, args[0]))
        run = Py_NewRef(learned->otherwise);
    else if ((run = find_call(&learned->known, &one.inputs, one.options, one.count, NULL)) == NULL || run == Py_None)
        run = met(learned, &one, args[0], args[2], run != NULL);
    Py_XDECREF(saved);
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    if (run == NULL)
        return NULL;
    int keep = PyObject_IsTrue(args[1]), done = keep < 0 ? -1 : 0;
    if (done == 0 && Py_IS_TYPE(run, &ProgramType))
        done = run_program(run, args[0], keep, args[2]);
    PyObject *result = done < 0 ? NULL : done > 0 ? Py_NewRef(Py_None) : PyObject_Vectorcall(run, args, 3, NULL);
    Py_DECREF(run);
    return result;
}

static PyObject *
new_learned(PyTypeObject *type, PyObject *args, PyObject *options)
{
    static char *words[] = {"learn", "otherwise", "at_once", NULL};
    PyObject *learn, *otherwise;
    int at_once;
    if (!PyArg_ParseTupleAndKeywords(args, options, "OOp", words, &learn, &otherwise, &at_once))
        return NULL;
    Learned *learned = (Learned *)type->tp_alloc(type, 0);
    if (learned == NULL)
        return NULL;
    learned->vectorcall = call_learned;
    learned->learn = Py_NewRef(learn);
    learned->otherwise = Py_NewRef(otherwise);
    learned->at_once = at_once;
    return (PyObject *)learned;
}

/* What is known, the latest first: for tests. */
static PyObject *
known_of(PyObject *self, void *Py_UNUSED(closure))
{
    return list_calls(&((Learned *)self)->known);
}

static int
traverse_learned(PyObject *self, visitproc visit, void *arg)
{
    Learned *learned = (Learned *)self;
    Py_VISIT(learned->learn);
    Py_VISIT(learned->otherwise);
    return visit_calls(&learned->known, visit, arg);
}

static void
free_learned(PyObject *self)
{
    Learned *learned = (Learned *)self;
    PyObject_GC_UnTrack(self);
    Py_XDECREF(learned->learn);
    Py_XDECREF(learned->otherwise);
    free_calls(&learned->known);
    Py_TYPE(self)->tp_free(self);
}

static PyGetSetDef attributes[] = {
    {"known", known_of, NULL, PyDoc_STR("Pairs of what an entry is like, and what is run for it."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject LearnedType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "dynamic._native.Learned",
    .tp_doc = PyDoc_STR("A pullback that is learned case by case: learned(entry, keep, cotangents)."),
    .tp_basicsize = sizeof(Learned),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Learned, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = new_learned,
    .tp_dealloc = free_learned,
    .tp_traverse = traverse_learned,
    .tp_getset = attributes,
};
