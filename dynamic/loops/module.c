/* The module, and what Python lends it. */

#define IMPORTS_NUMPY
#include "loops.h"

#define BLOCKS "blocks"

PyTypeObject *Tensor, *Entry, *Leaf, *Pullback, *Sizes;
PyObject *add, *reduce, *summed, *out_only, *cast, *unbroadcast, *detours, *observers;
PyObject *product, *matmul, *dot, *divide, *multiply, *run_turned, *place, *shape_and_key;
Py_ssize_t small, many, turned_ratio, turned_work;
PyObject *numbers, *broken, *clock_, *count, *nothing, *watchers, *recorder_name;
Slots at;

static THREAD_LOCAL PyObject *blocks; /* those that this thread is in, see grad_mode.py; a reference is held */

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
    {"history", history, METH_O, NULL},
    {"sizes", sizes, METH_O, NULL},
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
    PyObject *getitem = getitem_of_sizes();
    int done = getitem == NULL ? -1 : PyModule_AddObjectRef(module, "sizes_getitem", getitem);
    Py_XDECREF(getitem);
    return done < 0 ? -1 : PyModule_AddFunctions(module, functions);
}

/* Where the slots lie of the types, or of the type of the object, that are lent by a name. */
static const struct {
    const char *owner, *name;
    Py_ssize_t *offset;
} slots[] = {
    {"tensor", "_data", &at.data},           {"tensor", "_edge", &at.edge},
    {"tensor", "_grad", &at.grad},           {"entry", "pullback", &at.pullback},
    {"entry", "attrs", &at.attrs},           {"entry", "edges", &at.edges},
    {"entry", "saved", &at.saved},           {"entry", "shape", &at.shape},
    {"entry", "dtype", &at.dtype},           {"entry", "sequence", &at.sequence},
    {"entry", "hooks", &at.hooks},           {"leaf", "shape", &at.leaf_shape},
    {"leaf", "dtype", &at.leaf_dtype},       {"leaf", "tensor", &at.leaf_tensor},
    {"leaf", "hooks", &at.leaf_hooks},       {"leaf", "closed", &at.leaf_closed},
    {"pullback", "apply", &at.apply},        {"pullback", "frees", &at.frees},
    {"clock", "latest", &at.latest},         {"clock", "rewritten", &at.rewritten},
};

static PyObject *
named(PyObject *names, const char *name, const PyTypeObject *type)  /* borrowed */
{
    PyObject *value = names == NULL ? NULL : PyDict_GetItemString(names, name);
    if (value == NULL || (type != NULL && !PyObject_TypeCheck(value, (PyTypeObject *)type))) {
        PyErr_Format(PyExc_TypeError, "connect takes %s, a %s", name, type == NULL ? "value" : type->tp_name);
        return NULL;
    }
    return value;
}

static int
find_slots(PyObject *names)
{
    for (size_t i = 0; i < Py_ARRAY_LENGTH(slots); i++) {
        PyObject *owner = named(names, slots[i].owner, NULL);
        if (owner != NULL && !PyType_Check(owner))
            owner = (PyObject *)Py_TYPE(owner);
        if (owner == NULL || (*slots[i].offset = offset_of(owner, slots[i].name)) < 0)
            return -1;
    }
    return 0;
}

/* connect(**names): lend the loops what they work with. */
static PyObject *
connect(PyObject *module, PyObject *Py_UNUSED(args), PyObject *names)
{
    /* By name: where it is kept, and of which type it has to be, or NULL. */
    const struct {
        const char *name;
        void *place;
        PyTypeObject *type;
    } lent[] = {
        {"tensor", &Tensor, &PyType_Type},       {"entry", &Entry, &PyType_Type},
        {"leaf", &Leaf, &PyType_Type},           {"pullback", &Pullback, &PyType_Type},
        {"clock", &clock_, NULL},                {"count", &count, NULL},
        {"add", &add, NULL},                     {"reduce", &reduce, NULL},
        {"summed", &summed, NULL},               {"many", &many, &PyLong_Type},
        {"cast", &cast, NULL},                   {"unbroadcast", &unbroadcast, NULL},
        {"detours", &detours, &PyDict_Type},     {"observers", &observers, &PyDict_Type},
        {"numbers", &numbers, NULL},             {"nothing", &nothing, &PyDict_Type},
        {"broken", &broken, &PyTuple_Type},      {"watchers", &watchers, &PyList_Type},
        {"product", &product, NULL},             {"matmul", &matmul, NULL},
        {"dot", &dot, NULL},                     {"small", &small, &PyLong_Type},
        {"divide", &divide, NULL},               {"multiply", &multiply, NULL},
        {"run_turned", &run_turned, NULL},       {"sizes", &Sizes, &PyType_Type},
        {"place", &place, NULL},                 {"turned_work", &turned_work, &PyLong_Type},
        {"turned_ratio", &turned_ratio, &PyLong_Type},
    };
    if (Tensor != NULL) {  /* others rely on it */
        PyErr_SetString(PyExc_RuntimeError, "the loops are connected already");
        return NULL;
    }
    for (size_t i = 0; i < Py_ARRAY_LENGTH(lent); i++)
        if (named(names, lent[i].name, lent[i].type) == NULL)
            return NULL;
    if (find_slots(names) < 0)
        return NULL;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(lent); i++) {
        PyObject *value = Py_NewRef(PyDict_GetItemString(names, lent[i].name));  /* for as long as the process lives */
        if (lent[i].type == &PyLong_Type)
            *(Py_ssize_t *)lent[i].place = PyLong_AsSsize_t(value);
        else
            memcpy(lent[i].place, &value, sizeof value);
    }
    return open_up(module) < 0 || PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef first_functions[] = {
    {"connect", (PyCFunction)(void (*)(void))connect, METH_VARARGS | METH_KEYWORDS, NULL},
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
    import_array();
    if (find_allocator() < 0)
        return NULL;
    if ((out_only = Py_BuildValue("(s)", "out")) == NULL
        || (shape_and_key = Py_BuildValue("(ss)", "shape", "key")) == NULL
        || (recorder_name = PyUnicode_InternFromString("recorder")) == NULL)
        return NULL;
    return PyModule_Create(&module_definition);
}
