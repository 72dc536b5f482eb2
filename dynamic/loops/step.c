/* A training step: the value of a function of arrays and its gradients, where nothing is out of the ordinary. */

#include "inputs.h"

/* What Python lends a step: walk(entries, cotangents), owned(array, given) and zeros(edge). */
enum { WALK, OWNED, ZEROS, TOOLS };

/* The arguments of a step, as dynamic/functional.py makes them: arrays as tensors; the variables among them, and their leaves;
   and for each argument that is differentiated the keys of its dict, or None for an array. */
typedef struct {
    PyObject *given, *variables, *edges, *keys;
} Parts;

/* Arguments -------------------------------------------------------------------------------------------------------- */

static PyObject *
tensor_of(PyObject *array, PyObject *edge)  /* takes the reference to the edge, which may be NULL with an error set */
{
    PyObject *tensor = edge == NULL ? NULL : Tensor->tp_alloc(Tensor, 0);
    if (tensor == NULL) {
        Py_XDECREF(edge);
        return NULL;
    }
    SLOT(tensor, at.data) = Py_NewRef(array);
    SLOT(tensor, at.edge) = edge;
    SLOT(tensor, at.grad) = Py_NewRef(Py_None);
    return tensor;
}

static PyObject *
constant(PyObject *array)  /* so that operators on it are ops; NULL without an error for what is no array */
{
    return IS_ARRAY(array) && is_held(array) ? tensor_of(array, Py_NewRef(Py_None)) : NULL;
}

static PyObject *
variable(PyObject *array, const Parts *parts)  /* in the same way, of an array of floats, which gets a leaf */
{
    if (!IS_ARRAY(array) || !is_floating(array))
        return NULL;
    PyObject *leaf = Leaf->tp_alloc(Leaf, 0), *tensor = tensor_of(array, Py_XNewRef(leaf));
    if (tensor != NULL) {
        SLOT(leaf, at.leaf_tensor) = PyWeakref_NewRef(tensor, NULL);
        SLOT(leaf, at.leaf_shape) = shape_of(array);
        SLOT(leaf, at.leaf_dtype) = Py_NewRef(dtype_of(array));
        SLOT(leaf, at.leaf_hooks) = Py_NewRef(Py_None);
        SLOT(leaf, at.leaf_closed) = Py_NewRef(Py_False);
        if (PyErr_Occurred() || PyList_Append(parts->variables, tensor) < 0 || PyList_Append(parts->edges, leaf) < 0)
            Py_CLEAR(tensor);
    }
    Py_XDECREF(leaf);
    return tensor;
}

static PyObject *
variables(PyObject *arg, const Parts *parts)  /* a dict of them, whose keys are added; in the same way */
{
    PyObject *container = PyDict_New(), *names = PyDict_Keys(arg), *values = PyDict_Values(arg), *keys = NULL;
    int good = container != NULL && names != NULL && values != NULL;  /* as they are before a key is hashed */
    for (Py_ssize_t i = 0; good && i < PyList_GET_SIZE(names) && i < PyList_GET_SIZE(values); i++) {
        PyObject *array = Py_NewRef(PyList_GET_ITEM(values, i)), *name = Py_NewRef(PyList_GET_ITEM(names, i));
        PyObject *tensor = variable(array, parts);
        good = tensor != NULL && PyDict_SetItem(container, name, tensor) == 0;
        Py_XDECREF(tensor);
        Py_DECREF(array);
        Py_DECREF(name);
    }
    if (good && PyDict_GET_SIZE(container) == PyList_GET_SIZE(names))  /* keys may be equal all of a sudden */
        keys = PyList_AsTuple(names);
    if (keys == NULL || PyList_Append(parts->keys, keys) < 0)
        Py_CLEAR(container);
    Py_XDECREF(keys);
    Py_XDECREF(names);
    Py_XDECREF(values);
    return container;
}

static PyObject *
differentiated(PyObject *arg, const Parts *parts)
{
    if (PyDict_CheckExact(arg))
        return variables(arg, parts);
    Py_INCREF(arg);
    PyObject *tensor = variable(arg, parts);
    if (tensor != NULL && PyList_Append(parts->keys, Py_None) < 0)
        Py_CLEAR(tensor);
    Py_DECREF(arg);
    return tensor;
}

static int
fill(const Parts *parts, PyObject *args, PyObject *positions)  /* 0 where not all is simple, or with an error set */
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positions); i++) {
        Py_ssize_t position = PyLong_AsSsize_t(PyTuple_GET_ITEM(positions, i));
        if (PyErr_Occurred())
            return 0;
        if (position < 0 || position >= PyTuple_GET_SIZE(args) || PyTuple_GET_ITEM(parts->given, position) != NULL) {
            PyErr_SetString(PyExc_IndexError, "no such argument, or one that was named before");
            return 0;
        }
        PyObject *arg = differentiated(PyTuple_GET_ITEM(args, position), parts);
        if (arg == NULL)
            return 0;
        PyTuple_SET_ITEM(parts->given, position, arg);
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
        if (PyTuple_GET_ITEM(parts->given, i) == NULL) {
            PyObject *arg = constant(PyTuple_GET_ITEM(args, i));
            if (arg == NULL)
                return 0;
            PyTuple_SET_ITEM(parts->given, i, arg);
        }
    return 1;
}

/* The parts as a tuple of tuples, which nobody can change while other code runs; NULL, without an error, where an argument is
   neither an array nor, if it is differentiated, a dict of arrays of floats. */
static PyObject *
arguments(PyObject *args, PyObject *listed)
{
    PyObject *positions = PyList_AsTuple(listed), *result = NULL;
    Parts parts = {PyTuple_New(PyTuple_GET_SIZE(args)), PyList_New(0), PyList_New(0), PyList_New(0)};
    if (positions != NULL && parts.given != NULL && parts.variables != NULL && parts.edges != NULL && parts.keys != NULL
        && fill(&parts, args, positions)) {
        PyObject *variables_ = PyList_AsTuple(parts.variables), *edges = PyList_AsTuple(parts.edges);
        PyObject *keys = PyList_AsTuple(parts.keys);
        if (variables_ != NULL && edges != NULL && keys != NULL)
            result = PyTuple_Pack(4, parts.given, variables_, edges, keys);
        Py_XDECREF(variables_);
        Py_XDECREF(edges);
        Py_XDECREF(keys);
    }
    Py_XDECREF(positions);
    Py_XDECREF(parts.given);
    Py_XDECREF(parts.variables);
    Py_XDECREF(parts.edges);
    Py_XDECREF(parts.keys);
    return result;
}

static Parts
parts_of(PyObject *tuple)  /* borrowed */
{
    PyObject *const *items = PySequence_Fast_ITEMS(tuple);
    return (Parts){items[0], items[1], items[2], items[3]};
}

/* The way back ----------------------------------------------------------------------------------------------------- */

static void
close_variables(PyObject *variables_)  /* nobody can ask for their gradients in any further graph */
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(variables_); i++) {
        PyObject *tensor = PyTuple_GET_ITEM(variables_, i), *edge = SLOT(tensor, at.edge);
        if (edge != NULL && Py_IS_TYPE(edge, Leaf)) {
            put(edge, at.leaf_closed, Py_NewRef(Py_True));
            put(tensor, at.edge, Py_NewRef(Py_None));
        }
    }
}

static int
is_usual(void)  /* nobody observes ops, and they are recorded */
{
    return !is_idle() && !must_stand_aside();
}

/* The array of a scalar with a history, or NULL. */
static PyObject *
scalar_in(PyObject *output)
{
    PyObject *edge = Py_IS_TYPE(output, Tensor) ? SLOT(output, at.edge) : NULL;
    PyObject *data = edge != NULL && Py_IS_TYPE(edge, Entry) && !precedes_change(edge) ? SLOT(output, at.data) : NULL;
    return data != NULL && IS_ARRAY(data) && PyArray_NDIM(ARRAY(data)) == 0 && is_floating(data) ? data : NULL;
}

/* Whether the leaves that were reached are all among the edges; -1 with an error set. */
static int
are_own(PyObject *leaves, PyObject *edges)
{
    Py_ssize_t own_ = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(edges); i++) {
        int found = PySet_Contains(leaves, PyTuple_GET_ITEM(edges, i));
        if (found < 0)
            return -1;
        own_ += found;
    }
    return own_ == PySet_GET_SIZE(leaves);
}

/* {edge: 1} carried back along the entries: the cotangents of the leaves. */
static PyObject *
carried_back(PyObject *value, PyObject *edge, PyObject *entries, PyObject *walk_)
{
    PyObject *one = PyFloat_FromDouble(1), *cotangents = PyDict_New(), *reached = NULL;
    PyArray_Descr *dtype = (PyArray_Descr *)Py_NewRef(dtype_of(value));
    PyObject *seed = PyArray_FromAny(one, dtype, 0, 0, NPY_ARRAY_ENSUREARRAY, NULL);  /* takes the dtype */
    if (seed != NULL && cotangents != NULL && PyDict_SetItem(cotangents, edge, seed) == 0) {
        PyObject *both[] = {entries, cotangents};
        Py_CLEAR(seed);
        reached = PyObject_Vectorcall(walk_, both, 2, NULL);
    }
    if (reached != NULL && !PyDict_CheckExact(reached)) {
        PyErr_SetString(PyExc_TypeError, "the cotangents that were reached are no dict");
        Py_CLEAR(reached);
    }
    Py_XDECREF(one);
    Py_XDECREF(cotangents);
    Py_XDECREF(seed);
    return reached;
}

/* An array that the caller may keep: the same, if it lies in memory of its own and nobody else can be given it, else what
   owned(array, given) makes of it. */
static PyObject *
own(PyObject *array, int is_alone, PyObject *given, PyObject *owned)
{
    if (is_alone && IS_ARRAY(array) && PyArray_BASE(ARRAY(array)) == NULL && PyArray_ISWRITEABLE(ARRAY(array)))
        return Py_NewRef(array);
    PyObject *both[] = {Py_NewRef(array), given};
    PyObject *result = PyObject_Vectorcall(owned, both, 2, NULL);
    Py_DECREF(array);
    return result;
}

static PyObject *
gradient_at(PyObject *edge, PyObject *reached, PyObject *given, PyObject *const *tools)
{
    PyObject *array = PyDict_GetItemWithError(reached, edge);
    if (array != NULL)
        return own(array, Py_REFCNT(array) == 1, given, tools[OWNED]);
    return PyErr_Occurred() ? NULL : PyObject_CallOneArg(tools[ZEROS], edge);
}

/* The gradients in the containers of the arguments, one for each that is differentiated. */
static PyObject *
gradients(PyObject *reached, const Parts *parts, PyObject *given, PyObject *const *tools)
{
    PyObject *const *edge = PySequence_Fast_ITEMS(parts->edges);
    PyObject *result = PyTuple_New(PyTuple_GET_SIZE(parts->keys));
    for (Py_ssize_t i = 0; result != NULL && i < PyTuple_GET_SIZE(parts->keys); i++) {
        PyObject *keys = PyTuple_GET_ITEM(parts->keys, i), *found;
        found = keys == Py_None ? gradient_at(*edge++, reached, given, tools) : PyDict_New();
        for (Py_ssize_t j = 0; keys != Py_None && found != NULL && j < PyTuple_GET_SIZE(keys); j++) {
            PyObject *array = gradient_at(*edge++, reached, given, tools);
            if (array == NULL || PyDict_SetItem(found, PyTuple_GET_ITEM(keys, j), array) < 0)
                Py_CLEAR(found);
            Py_XDECREF(array);
        }
        if (found == NULL)
            Py_CLEAR(result);
        else
            PyTuple_SET_ITEM(result, i, found);
    }
    return result;
}

/* (value, gradients, None) of what the function gave, once nobody else can ask for the gradients; NULL, without an error, where
   more than these are reached. */
static PyObject *
finished(PyObject *data, PyObject *edge, const Parts *parts, PyObject *const *tools)
{
    close_variables(parts->variables);
    PyObject *roots = PyTuple_Pack(1, edge), *past = roots == NULL ? NULL : history(NULL, roots), *result = NULL;
    if (past != NULL && are_own(PyTuple_GET_ITEM(past, 1), parts->edges) == 1) {
        PyObject *given = PySet_New(NULL), *value = given == NULL ? NULL : own(data, 1, given, tools[OWNED]);
        PyObject *reached = value == NULL ? NULL : carried_back(data, edge, PyTuple_GET_ITEM(past, 0), tools[WALK]);
        PyObject *found = reached == NULL ? NULL : gradients(reached, parts, given, tools);
        result = found == NULL ? NULL : PyTuple_Pack(3, value, found, Py_None);
        Py_XDECREF(given);
        Py_XDECREF(value);
        Py_XDECREF(reached);
        Py_XDECREF(found);
    }
    Py_XDECREF(roots);
    Py_XDECREF(past);
    return result;
}

/* step(tools, f, args, positions): `(value, gradients, None)` of `f(*args)`. None where the arguments are more than arrays and
   dicts of them, or somebody wants to see the ops; and `(output, None, parts)` where f has run and it turns out that
   more has to be thought of: what it returned, and what `arguments` gave. */
PyObject *
step(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count_)
{
    if (count_ != 4 || !PyTuple_CheckExact(args[0]) || PyTuple_GET_SIZE(args[0]) != TOOLS || !PyTuple_CheckExact(args[2])
        || !PyList_CheckExact(args[3])) {
        PyErr_SetString(PyExc_TypeError, "step takes three tools, a function, a tuple of arguments, a list of positions");
        return NULL;
    }
    PyObject *tuple = is_usual() ? arguments(args[2], args[3]) : NULL, *result = NULL;
    if (tuple == NULL)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    Parts parts = parts_of(tuple);
    PyObject *output = PyObject_Call(args[1], parts.given, NULL);
    PyObject *data = output == NULL || !is_usual() ? NULL : Py_XNewRef(scalar_in(output));
    if (data != NULL) {
        PyObject *edge = Py_NewRef(SLOT(output, at.edge));  /* held: the slots of a tensor are anybody's */
        result = finished(data, edge, &parts, PySequence_Fast_ITEMS(args[0]));
        Py_DECREF(edge);
        Py_DECREF(data);
    }
    if (output != NULL && result == NULL && !PyErr_Occurred())
        result = PyTuple_Pack(3, output, Py_None, tuple);
    Py_XDECREF(output);
    Py_DECREF(tuple);
    return result;
}
