/* Index: x[key] of a tensor and a key of ints, slices, None and Ellipsis, which a view shows. */

#include "inputs.h"

static int
is_position(PyObject *value)
{
    return value == Py_None || PyLong_CheckExact(value);
}

static int
takes_axis(PyObject *part)  /* 1 for an int or a slice, 0 for None and Ellipsis, -1 for what is not simple */
{
    if (PyLong_CheckExact(part))
        return 1;
    if (!PySlice_Check(part))
        return part == Py_None || part == Py_Ellipsis ? 0 : -1;
    PySliceObject *slice = (PySliceObject *)part;
    return is_position(slice->start) && is_position(slice->stop) && is_position(slice->step) ? 1 : -1;
}

/* slicing.complete_key(parts, ndim): NULL, with no error set, where that refuses. */
static PyObject *
completed(PyObject *const *parts, Py_ssize_t count_, int ndim)
{
    Py_ssize_t used = 0, dots = -1;
    for (Py_ssize_t i = 0; i < count_; i++) {
        int axis = takes_axis(parts[i]);
        if (axis < 0 || (parts[i] == Py_Ellipsis && dots >= 0))
            return NULL;
        used += axis;
        if (parts[i] == Py_Ellipsis)
            dots = i;
    }
    if (used > ndim)
        return NULL;
    Py_ssize_t before = dots < 0 ? count_ : dots, added = ndim - used, size = 0;
    PyObject *key = PyTuple_New(count_ - (dots >= 0) + added);
    for (Py_ssize_t i = 0; key != NULL && i < before; i++)
        PyTuple_SET_ITEM(key, size++, Py_NewRef(parts[i]));
    for (Py_ssize_t i = 0; key != NULL && i < added; i++)
        PyTuple_SET_ITEM(key, size++, Py_NewRef(whole));
    for (Py_ssize_t i = before + 1; key != NULL && i < count_; i++)
        PyTuple_SET_ITEM(key, size++, Py_NewRef(parts[i]));
    return key;
}

/* The kernel of getitem: with the Ellipsis a view even where one element is left. */
static PyObject *
view_of(PyObject *array, PyObject *key)
{
    Py_ssize_t count_ = PyTuple_GET_SIZE(key);
    PyObject *full = PyTuple_New(count_ + 1), *view = NULL;
    if (full != NULL) {
        for (Py_ssize_t i = 0; i < count_; i++)
            PyTuple_SET_ITEM(full, i, Py_NewRef(PyTuple_GET_ITEM(key, i)));
        PyTuple_SET_ITEM(full, count_, Py_NewRef(Py_Ellipsis));
        view = PyObject_GetItem(array, full);
        Py_DECREF(full);
    }
    return made(view);
}

PyObject *
item(Recorder *recorder, PyObject *tensor, PyObject *key)  /* or NULL: with no error set for the interpreter to look */
{
    Inputs inputs;
    PyObject *parts = NULL, *result = NULL;
    if (hold(&inputs, &tensor, 1, 0) && inputs.tensors == 1) {
        int ndim = PyArray_NDIM(ARRAY(inputs.arrays[0]));
        parts = PyTuple_CheckExact(key) ? completed(PySequence_Fast_ITEMS(key), PyTuple_GET_SIZE(key), ndim)
                                        : completed(&key, 1, ndim);
    }
    PyObject *attrs = parts == NULL ? NULL : PyDict_New();
    if (attrs != NULL && PyDict_SetItem(attrs, key_name, parts) == 0) {
        PyObject *out = view_of(inputs.arrays[0], parts);
        result = out == NULL ? NULL : recorded(recorder, &inputs, out, attrs);
    }
    Py_XDECREF(parts);
    Py_XDECREF(attrs);
    let_go(&inputs);
    is_out_of_the_ordinary(result);
    return result;
}
