/* The module, and what Python lends it. */

#include "loops.h"

#define BLOCKS "blocks"

PyTypeObject *Tensor, *Entry, *Leaf, *Pullback, *ndarray, *dtype_type;
PyObject *asarray, *add, *reduce, *summed, *out_only, *cast, *unbroadcast, *detours, *observers;
PyObject *product, *matmul, *dot, *divide, *multiply;
Py_ssize_t small, many;
PyObject *numbers, *broken, *clock_, *count, *nothing, *watchers, *recorder_name, *key_name, *whole;
Slots at;

#ifdef _MSC_VER
static __declspec(thread) PyObject *blocks;
#else
static _Thread_local PyObject *blocks; /* those that this thread is in, see mode.py; a reference is held */
#endif

Py_ssize_t
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

/* Whether the structs of loops.h are what arrays are: a sample, and what Python says of it. */
static int
is_as_told(PyObject *array, PyObject *shape, PyObject *dtype, PyObject *base, int number, int itemsize, int writeable)
{
    return ARRAY(array)->ndim == PyTuple_GET_SIZE(shape) && has_shape(array, shape) && ARRAY(array)->dtype == dtype
           && (ARRAY(array)->base == NULL ? Py_None : ARRAY(array)->base) == base
           && DTYPE(dtype)->number == number && DTYPE(dtype)->itemsize == itemsize && is_floating(array)
           && !(ARRAY(array)->flags & WRITEABLE) == !writeable;
}

PyObject *
mode_now(void)
{
    PyObject *key, *mode = NULL;
    Py_ssize_t at_ = 0;
    while (blocks != NULL && PyDict_Next(blocks, &at_, &key, &mode))
        ;
    return mode != NULL && PyTuple_Check(mode) && PyTuple_GET_SIZE(mode) == 3 ? mode : NULL;
}

int
is_idle(void)
{
    PyObject *mode = mode_now();
    return mode != NULL && PyTuple_GET_ITEM(mode, 0) == Py_False;
}

static void
unfollow(PyObject *followed)  /* when a thread ends, as a rule in that thread */
{
    if (PyCapsule_GetPointer(followed, BLOCKS) == blocks)
        Py_CLEAR(blocks);
}

/* follow(blocks): read the modes of this thread's blocks from this dict, as long as the result lives. */
static PyObject *
follow(PyObject *Py_UNUSED(module), PyObject *table)
{
    if (!PyDict_CheckExact(table)) {
        PyErr_SetString(PyExc_TypeError, "follow takes a dict of blocks");
        return NULL;
    }
    Py_XSETREF(blocks, Py_NewRef(table));
    return PyCapsule_New(table, BLOCKS, unfollow);
}

/* What works once it is lent what it works with: the module has it from then on. */
static PyMethodDef functions[] = {
    {"follow", follow, METH_O, NULL},
    {"binder", binder, METH_O, NULL},
    {"arguments", (PyCFunction)(void (*)(void))arguments, METH_FASTCALL, NULL},
    {"grouped", (PyCFunction)(void (*)(void))grouped, METH_FASTCALL, NULL},
    {"close", close_variables, METH_O, NULL},
    {"collect", (PyCFunction)(void (*)(void))collect, METH_FASTCALL, NULL},
    {"history", history, METH_O, NULL},
    {"step", (PyCFunction)(void (*)(void))step, METH_FASTCALL, NULL},
    {"walk", (PyCFunction)(void (*)(void))walk, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static int
open_up(PyObject *module)
{
    PyTypeObject *types[] = {&RecorderType, &RecordType, &ProgramType, &LearnedType};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(types); i++)
        if (PyModule_AddType(module, types[i]) < 0)
            return -1;
    return PyModule_AddFunctions(module, functions);
}

/* connect(**names): lend what the loops work with. */
static PyObject *
connect(PyObject *module, PyObject *args, PyObject *options)
{
    static char *words[] = {"tensor", "entry", "leaf", "pullback", "clock", "ndarray", "asarray", "add", "cast",
                            "unbroadcast", "detours", "observers", "numbers", "broken", "count", "nothing",
                            "watchers", "reduce", "summed", "many", "dtype", "product", "matmul", "dot", "divide", "multiply", "small", "samples", NULL};
    PyObject *pullback, *tensor, *entry, *leaf, *array, *kinds, *samples, *sample, *shape, *dtype, *base;
    int number, itemsize, writeable;
    if (Tensor != NULL) {  /* others rely on it */
        PyErr_SetString(PyExc_RuntimeError, "the loops are connected already");
        return NULL;
    }
    if (!PyArg_ParseTupleAndKeywords(args, options, "OOOOOOOOOOO!O!OOOO!O!OOnOOOOOOnO!", words, &tensor, &entry, &leaf,
                                     &pullback, &clock_, &array, &asarray, &add, &cast, &unbroadcast,
                                     &PyDict_Type, &detours, &PyDict_Type, &observers, &numbers, &broken, &count,
                                     &PyDict_Type, &nothing, &PyList_Type, &watchers, &reduce, &summed, &many,
                                     &kinds, &product, &matmul, &dot, &divide, &multiply, &small, &PyTuple_Type, &samples))
        return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(samples); i++) {
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(samples, i), "OO!OOiip", &sample, &PyTuple_Type, &shape, &dtype, &base,
                              &number, &itemsize, &writeable))
            return NULL;
        if (!is_as_told(sample, shape, dtype, base, number, itemsize, writeable)) {
            PyErr_SetString(PyExc_ImportError, "arrays of this NumPy are laid out otherwise than known here");
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
    PyObject *held[] = {tensor, entry, leaf, pullback, clock_, array, asarray, add, cast, unbroadcast, detours, observers,
                        numbers, broken, count, nothing, watchers, reduce, summed, kinds, product, matmul, dot,
                        divide, multiply};
    for (size_t i = 0; i < Py_ARRAY_LENGTH(held); i++)
        Py_INCREF(held[i]);  /* for as long as the process lives */
    Tensor = (PyTypeObject *)tensor;
    Entry = (PyTypeObject *)entry;
    Leaf = (PyTypeObject *)leaf;
    Pullback = (PyTypeObject *)pullback;
    ndarray = (PyTypeObject *)array;
    dtype_type = (PyTypeObject *)kinds;
    return open_up(module) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef first_functions[] = {
    {"connect", (PyCFunction)(void (*)(void))connect, METH_VARARGS | METH_KEYWORDS, NULL},
    {"connect_pool", connect_pool, METH_O, NULL},
    {"pool", new_pool, METH_VARARGS, NULL},
    {"enter_pool", enter_pool, METH_O, NULL},
    {"leave_pool", leave_pool, METH_O, NULL},
    {"pool_stats", pool_stats, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dynamic._native",
    .m_doc = PyDoc_STR("The inner loops of the tape, compiled; see loops.h."),
    .m_size = -1,
    .m_methods = first_functions,
};

PyMODINIT_FUNC
PyInit__native(void)
{
    if ((out_only = Py_BuildValue("(s)", "out")) == NULL
        || (recorder_name = PyUnicode_InternFromString("recorder")) == NULL
        || (key_name = PyUnicode_InternFromString("key")) == NULL || (whole = PySlice_New(NULL, NULL, NULL)) == NULL)
        return NULL;
    return PyModule_Create(&module_definition);
}
