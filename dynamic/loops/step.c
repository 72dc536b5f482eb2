/* A training step: the value of a function of arrays and its gradients, where nothing is out of the ordinary. */

#include "inputs.h"

/* What a function returned, held: the slots of a tensor are anybody's. */
typedef struct {
    PyObject *data, *edge;
} Output;

/* What `arguments` found. */
enum { GIVEN, VARIABLES, EDGES, KEYS };

static PyObject *
called(PyObject *f, PyObject *given)
{
    PyObject *args = PyList_AsTuple(given);
    PyObject *output = args == NULL ? NULL : PyObject_Call(f, args, NULL);
    Py_XDECREF(args);
    return output;
}

static int
is_scalar_with_history(PyObject *output)
{
    if (!Py_IS_TYPE(output, Tensor) || SLOT(output, at.edge) == NULL || !Py_IS_TYPE(SLOT(output, at.edge), Entry))
        return 0;
    PyObject *data = SLOT(output, at.data);
    return data != NULL && IS_ARRAY(data) && PyArray_NDIM(ARRAY(data)) == 0 && is_floating(data);
}

static int
is_usual(void)  /* nobody observes ops, and they are recorded */
{
    return !is_idle() && !must_stand_aside();
}

/* Whether the leaves that were reached are all among the edges. */
static int
are_own(PyObject *leaves, PyObject *edges)
{
    Py_ssize_t own_ = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(edges); i++) {
        int found = PySet_Contains(leaves, PyList_GET_ITEM(edges, i));
        if (found < 0)
            return -1;
        own_ += found;
    }
    return own_ == PySet_GET_SIZE(leaves);
}

/* The cotangents of the leaves: {edge: 1} carried back along the entries. */
static PyObject *
carried_back(const Output *output, PyObject *entries, PyObject *walk_, PyObject *ones)
{
    PyObject *dtype = dtype_number(output->data), *cotangents = PyDict_New(), *reached = NULL;
    PyObject *one = dtype == NULL ? NULL : PyObject_GetItem(ones, dtype);
    PyObject *seed = one == NULL ? NULL : PyObject_CallMethod(one, "copy", NULL);
    if (seed != NULL && cotangents != NULL && PyDict_SetItem(cotangents, output->edge, seed) == 0) {
        PyObject *both[] = {entries, cotangents};
        Py_CLEAR(seed);
        reached = PyObject_Vectorcall(walk_, both, 2, NULL);
    }
    Py_XDECREF(dtype);
    Py_XDECREF(cotangents);
    Py_XDECREF(one);
    Py_XDECREF(seed);
    return reached;
}

static PyObject *
gradients(PyObject *reached, PyObject *parts, PyObject *owned, PyObject *zeros)
{
    PyObject *from[] = {reached, PyTuple_GET_ITEM(parts, EDGES), owned, zeros};
    PyObject *arrays = collect(NULL, from, 4), *result = NULL;
    if (arrays != NULL) {
        PyObject *into[] = {PyTuple_GET_ITEM(parts, KEYS), arrays};
        result = grouped(NULL, into, 2);
    }
    Py_XDECREF(arrays);
    return result;
}

static PyObject *
value_and_gradients(const Output *output, PyObject *parts, PyObject *entries, PyObject *tools)
{
    PyObject *owned = PyTuple_GET_ITEM(tools, 1), *found = NULL, *nobody = PyList_New(0);
    PyObject *value = nobody == NULL ? NULL : own(output->data, nobody, owned);
    PyObject *reached = value == NULL ? NULL
                                      : carried_back(output, entries, PyTuple_GET_ITEM(tools, 0), PyTuple_GET_ITEM(tools, 3));
    if (reached != NULL && !PyDict_CheckExact(reached))
        PyErr_SetString(PyExc_TypeError, "the cotangents that were reached are no dict");
    else if (reached != NULL)
        found = gradients(reached, parts, owned, PyTuple_GET_ITEM(tools, 2));
    PyObject *result = found == NULL ? NULL : PyTuple_Pack(3, value, found, Py_None);
    Py_XDECREF(nobody);
    Py_XDECREF(value);
    Py_XDECREF(reached);
    Py_XDECREF(found);
    return result;
}

/* The same once nobody else can ask for the gradients; NULL, without an error, where more than these are reached. */
static PyObject *
finished(const Output *output, PyObject *parts, PyObject *tools)
{
    PyObject *closed = close_variables(NULL, PyTuple_GET_ITEM(parts, VARIABLES)), *result = NULL;
    PyObject *roots = closed == NULL ? NULL : PyTuple_Pack(1, output->edge);
    PyObject *past = roots == NULL ? NULL : history(NULL, roots);
    if (past != NULL && are_own(PyTuple_GET_ITEM(past, 1), PyTuple_GET_ITEM(parts, EDGES)) == 1)
        result = value_and_gradients(output, parts, PyTuple_GET_ITEM(past, 0), tools);
    Py_XDECREF(closed);
    Py_XDECREF(roots);
    Py_XDECREF(past);
    return result;
}

/* step(tools, f, args, positions): `(value, gradients, None)` of `f(*args)`. None where the arguments are more than arrays and
   dicts of them, or somebody wants to see the ops; and `(output, None, parts)` where f has run and it turns out that
   more has to be thought of: what it returned, and what `arguments` gave. `tools` are what walks back, copies what is
   not its own, makes zeros for an edge, and the ones of each dtype. */
PyObject *
step(PyObject *module, PyObject *const *args, Py_ssize_t count_)
{
    if (count_ != 4 || !PyTuple_CheckExact(args[0]) || PyTuple_GET_SIZE(args[0]) != 4) {
        PyErr_SetString(PyExc_TypeError, "step takes four tools, a function, its arguments, and positions of these");
        return NULL;
    }
    if (!is_usual())
        Py_RETURN_NONE;
    PyObject *parts = arguments(module, args + 2, 2);
    if (parts == NULL || parts == Py_None)
        return parts;
    PyObject *output = called(args[1], PyTuple_GET_ITEM(parts, GIVEN)), *result = NULL;
    if (output != NULL && is_scalar_with_history(output) && is_usual()
        && !precedes_change(SLOT(output, at.edge))) {
        Output held_ = {Py_NewRef(SLOT(output, at.data)), Py_NewRef(SLOT(output, at.edge))};
        result = finished(&held_, parts, args[0]);
        Py_DECREF(held_.data);
        Py_DECREF(held_.edge);
    }
    if (result == NULL && !PyErr_Occurred())
        result = PyTuple_Pack(3, output, Py_None, parts);
    Py_XDECREF(output);
    Py_DECREF(parts);
    return result;
}
