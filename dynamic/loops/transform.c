/* What is done around a transform: its arguments as variables, and their gradients. */

#include "inputs.h"

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
        SLOT(leaf, at.leaf_dtype) = Py_NewRef(dtype_of(array));
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
    if (!IS_ARRAY(array) || !is_floating(array))
        return 0;
    Py_INCREF(array);
    PyObject *tensor = variable_of(array);
    Py_DECREF(array);
    int failed = tensor == NULL || PyList_Append(tensors, tensor) < 0
                 || PyList_Append(edges, SLOT(tensor, at.edge)) < 0;
    Py_XDECREF(tensor);
    return failed ? -1 : 1;
}

/* A container of variables laid out like an argument: a new reference, or NULL, without an error where it is no simple
   one; `keys` are those of a dict, or None for an array. */
static PyObject *
differentiated(PyObject *arg, PyObject *tensors, PyObject *edges, PyObject **keys)
{
    Py_ssize_t first = PyList_GET_SIZE(tensors);
    PyObject *container = PyDict_CheckExact(arg) ? PyDict_New() : NULL;
    *keys = NULL;
    if (!PyDict_CheckExact(arg)) {
        if (add_variable(arg, tensors, edges) <= 0)
            return NULL;
        *keys = Py_NewRef(Py_None);
        return Py_NewRef(PyList_GET_ITEM(tensors, first));
    }
    PyObject *names = PyDict_Keys(arg), *values = PyDict_Values(arg);  /* as they are before a key is hashed */
    int good = container != NULL && names != NULL && values != NULL
               && PyList_GET_SIZE(names) == PyList_GET_SIZE(values);
    for (Py_ssize_t i = 0; good && i < PyList_GET_SIZE(values); i++)
        good = add_variable(PyList_GET_ITEM(values, i), tensors, edges) > 0;
    for (Py_ssize_t i = 0; good && i < PyList_GET_SIZE(names); i++)
        good = PyDict_SetItem(container, PyList_GET_ITEM(names, i), PyList_GET_ITEM(tensors, first + i)) == 0;
    if (good && PyDict_GET_SIZE(container) == PyList_GET_SIZE(names))  /* keys may be equal all of a sudden */
        *keys = PyList_AsTuple(names);
    if (*keys == NULL)
        Py_CLEAR(container);
    Py_XDECREF(names);
    Py_XDECREF(values);
    return container;
}

static PyObject *
constant(PyObject *arg)  /* an array as a tensor, so that operators on it are ops; NULL without an error for others */
{
    if (!IS_ARRAY(arg) || !is_held(arg))
        return NULL;
    PyObject *tensor = Tensor->tp_alloc(Tensor, 0);
    if (tensor != NULL) {
        SLOT(tensor, at.data) = Py_NewRef(arg);
        SLOT(tensor, at.edge) = Py_NewRef(Py_None);
        SLOT(tensor, at.grad) = Py_NewRef(Py_None);
    }
    return tensor;
}

/* arguments(args, positions): the arguments as tensors, those in `positions` as variables; the variables and their
   edges, and the keys of each argument that is differentiated. None where an argument is neither an array nor, if it is
   differentiated, a dict of arrays of floats. */
PyObject *
arguments(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count_)
{
    if (count_ != 2 || !PyTuple_CheckExact(args[0]) || !PyList_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "arguments takes a tuple of arguments and a list of positions");
        return NULL;
    }
    PyObject *positions = PyList_AsTuple(args[1]);
    if (positions == NULL)
        return NULL;
    Py_ssize_t size = PyTuple_GET_SIZE(args[0]), wanted = PyTuple_GET_SIZE(positions);
    PyObject *given = PyList_New(size), *tensors = PyList_New(0), *edges = PyList_New(0), *keys = PyList_New(wanted);
    int simple = given != NULL && tensors != NULL && edges != NULL && keys != NULL;
    for (Py_ssize_t i = 0; simple && i < wanted; i++) {
        Py_ssize_t position = PyLong_AsSsize_t(PyTuple_GET_ITEM(positions, i));
        if (!PyErr_Occurred() && (position < 0 || position >= size || PyList_GET_ITEM(given, position) != NULL))
            PyErr_SetString(PyExc_IndexError, "no such argument, or one that was named before");
        if ((simple = !PyErr_Occurred()) == 0)
            break;
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
    Py_DECREF(positions);
    return simple || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

/* grouped(keys, values): the values in the containers that `arguments` found, one for each that is differentiated. */
PyObject *
grouped(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count_)
{
    if (count_ != 2 || !PyList_CheckExact(args[0]) || !PyList_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "grouped takes a list of keys and a list of values");
        return NULL;
    }
    PyObject *all = PyList_AsTuple(args[0]), *values = PyList_AsTuple(args[1]);  /* as they are before a key is hashed */
    Py_ssize_t size = all == NULL ? 0 : PyTuple_GET_SIZE(all), next = 0;
    PyObject *result = all == NULL || values == NULL ? NULL : PyTuple_New(size);
    for (Py_ssize_t i = 0; result != NULL && i < size; i++) {
        PyObject *keys = PyTuple_GET_ITEM(all, i), *container;
        Py_ssize_t taken = keys == Py_None ? 1 : PyTuple_Check(keys) ? PyTuple_GET_SIZE(keys) : -1;
        if (taken < 0)
            PyErr_SetString(PyExc_TypeError, "keys are a tuple, or None");
        else if (next + taken > PyTuple_GET_SIZE(values))
            PyErr_SetString(PyExc_ValueError, "fewer values than keys");
        if (PyErr_Occurred())
            container = NULL;
        else if (keys == Py_None)
            container = Py_NewRef(PyTuple_GET_ITEM(values, next++));
        else
            container = PyDict_New();
        for (Py_ssize_t j = 0; keys != Py_None && container != NULL && j < taken; j++)
            if (PyDict_SetItem(container, PyTuple_GET_ITEM(keys, j), PyTuple_GET_ITEM(values, next++)) < 0)
                Py_CLEAR(container);
        if (container == NULL)
            Py_CLEAR(result);
        else
            PyTuple_SET_ITEM(result, i, container);
    }
    Py_XDECREF(all);
    Py_XDECREF(values);
    return result;
}

/* close(variables): nobody can ask for their gradients in any further graph. */
PyObject *
close_variables(PyObject *Py_UNUSED(module), PyObject *tensors)
{
    if (!PyList_CheckExact(tensors)) {
        PyErr_SetString(PyExc_TypeError, "close takes a list of tensors");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tensors); i++) {
        PyObject *tensor = PyList_GET_ITEM(tensors, i);
        if (!Py_IS_TYPE(tensor, Tensor)) {
            PyErr_SetString(PyExc_TypeError, "close takes a list of tensors");
            return NULL;
        }
        PyObject *edge = SLOT(tensor, at.edge);
        if (edge != NULL && Py_IS_TYPE(edge, Leaf)) {
            Py_INCREF(tensor);
            put(edge, at.leaf_closed, Py_NewRef(Py_True));
            put(tensor, at.edge, Py_NewRef(Py_None));
            Py_DECREF(tensor);
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

PyObject *
own(PyObject *array, PyObject *before, PyObject *owned)
{
    int twice = Py_REFCNT(array) > 1 && is_listed(before, array);  /* `found` has one reference */
    if (!twice && IS_ARRAY(array) && PyArray_BASE(ARRAY(array)) == NULL && PyArray_ISWRITEABLE(ARRAY(array)))
        return Py_NewRef(array);
    Py_INCREF(array);
    PyObject *given = PySet_New(NULL), *identity = PyLong_FromVoidPtr(array), *result = NULL;
    if (given != NULL && identity != NULL && (!twice || PySet_Add(given, identity) == 0)) {
        PyObject *args[] = {array, given};
        result = PyObject_Vectorcall(owned, args, 2, NULL);
    }
    Py_XDECREF(given);
    Py_XDECREF(identity);
    Py_DECREF(array);
    return result;
}

PyObject *
collect(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count_)
{
    if (count_ != 4 || !PyDict_CheckExact(args[0]) || !PyList_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "collect takes a dict, a list of edges, who copies and who makes zeros");
        return NULL;
    }
    PyObject *arrays = PyList_New(0);
    for (Py_ssize_t i = 0; arrays != NULL && i < PyList_GET_SIZE(args[1]); i++) {
        PyObject *edge = Py_NewRef(PyList_GET_ITEM(args[1], i)), *array = PyDict_GetItemWithError(args[0], edge);
        if (array == NULL)
            array = PyErr_Occurred() ? NULL : PyObject_CallOneArg(args[3], edge);
        else
            array = own(array, arrays, args[2]);
        Py_DECREF(edge);
        if (array == NULL || PyList_Append(arrays, array) < 0)
            Py_CLEAR(arrays);
        Py_XDECREF(array);
    }
    return arrays;
}
