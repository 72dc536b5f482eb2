/* Arrays: who is told of them, and when their memory may take another result. */

#include "loops.h"
#include <math.h>

#define MANY_QUOTIENTS 4096
#define LARGEST_DIVISOR 0x1p100 /* whose reciprocal is no subnormal number */

PyObject *
made(PyObject *value)  /* the same of what has just been made: whoever watches is told of it */
{
    PyObject *array = as_array(value);
    for (Py_ssize_t i = 0; array != NULL && i < PyList_GET_SIZE(watchers); i++) {
        PyObject *watcher = Py_NewRef(PyList_GET_ITEM(watchers, i));
        PyObject *done = PyObject_CallOneArg(watcher, array);
        Py_DECREF(watcher);
        if (done == NULL)
            Py_CLEAR(array);
        Py_XDECREF(done);
    }
    return array;
}

/* Whether an array to which we have the one reference may be written over: it is large, a pool is on, and nobody else
   sees its memory, since who does holds the array. */
int
is_ours(PyObject *array)
{
    return IS_ARRAY(array) && Py_REFCNT(array) == 1 && PyArray_ISCARRAY(ARRAY(array))
           && PyArray_BASE(ARRAY(array)) == NULL && PyArray_NBYTES(ARRAY(array)) >= reuse_from;
}

/* What `matrix_product` in graphs/ops/linalg.py chooses for two arrays; itself where it may turn the product round. */
static PyObject *
chosen_product(PyObject *x, PyObject *y)
{
    if (!IS_ARRAY(x) || !IS_ARRAY(y) || PyArray_NDIM(ARRAY(x)) != 2 || PyArray_NDIM(ARRAY(y)) != 2
        || dtype_of(x) != dtype_of(y))
        return matmul;
    npy_intp rows = PyArray_DIM(ARRAY(x), 0), inner = PyArray_DIM(ARRAY(x), 1), columns = PyArray_DIM(ARRAY(y), 1);
    if (rows <= inner / turned_ratio && rows * inner * columns >= turned_work && !PyArray_IS_C_CONTIGUOUS(ARRAY(y)))
        return product;
    int number = PyArray_TYPE(ARRAY(x));
    return rows * columns <= small && (number == NPY_FLOAT || number == NPY_DOUBLE) ? dot : matmul;
}

/* 1 / y for a number by which many are divided, if that is 1, 2, 4, ...: a product with it has the same bits, in half the
   time. NULL, without an error, for any other. */
static PyObject *
exact_reciprocal(PyObject *x, PyObject *y)
{
    if (!IS_ARRAY(x) || !IS_ARRAY(y) || PyArray_NDIM(ARRAY(y)) != 0 || PyArray_SIZE(ARRAY(x)) < MANY_QUOTIENTS
        || dtype_of(x) != dtype_of(y))
        return NULL;
    int number = PyArray_TYPE(ARRAY(x)), exponent;
    if (number != NPY_FLOAT && number != NPY_DOUBLE)
        return NULL;
    double value = PyFloat_AsDouble(y);
    if (!(value >= 1 && value <= LARGEST_DIVISOR) || frexp(value, &exponent) != 0.5)
        return NULL;
    PyObject *key = Py_BuildValue("(dOi)", 1 / value, (PyObject *)&PyFloat_Type, number);
    PyObject *found = key == NULL ? NULL : PyObject_GetItem(numbers, key);
    Py_XDECREF(key);
    return found;
}

/* The quicker way to the same bits: a kernel, and perhaps another second argument, to which `held` is the reference. NULL
   with an error set. */
static PyObject *
quicker(PyObject *kernel, PyObject **both, PyObject **held)
{
    if (kernel == product)
        return chosen_product(both[0], both[1]);  /* without the Python around it */
    if (kernel != divide)
        return kernel;
    if ((*held = exact_reciprocal(both[0], both[1])) == NULL)
        return PyErr_Occurred() ? NULL : kernel;
    both[1] = *held;
    return multiply;
}

PyObject *
call_kernel(PyObject *kernel, PyObject *const *args, Py_ssize_t count_, PyObject *attrs)  /* attrs: a dict, or NULL */
{
    if (attrs != NULL)
        return PyObject_VectorcallDict(kernel, args, (size_t)count_, attrs);
    if (count_ != 2)
        return PyObject_Vectorcall(kernel, args, (size_t)count_, NULL);
    PyObject *both[] = {args[0], args[1]}, *held = NULL;
    kernel = quicker(kernel, both, &held);
    PyObject *out = kernel == NULL ? NULL : PyObject_Vectorcall(kernel, both, 2, NULL);
    Py_XDECREF(held);
    return out;
}

PyObject *
call_into(PyObject *kernel, PyObject *const *args, Py_ssize_t count_, PyObject *out)
{
    PyObject *all[MOST_ARGUMENTS + 1], *held = NULL, *result = NULL;
    memcpy(all, args, (size_t)count_ * sizeof(PyObject *));
    all[count_] = out;
    if (count_ != 2 || (kernel = quicker(kernel, all, &held)) != NULL)
        result = PyObject_Vectorcall(kernel, all, (size_t)count_, out_only);
    Py_XDECREF(held);
    return result;
}

int
fits_into(PyObject *array, PyObject *target)  /* by broadcasting, without a change of dtype */
{
    int added = PyArray_NDIM(ARRAY(target)) - PyArray_NDIM(ARRAY(array));
    if (added < 0 || dtype_of(array) != dtype_of(target))
        return 0;
    for (int i = 0; i < PyArray_NDIM(ARRAY(array)); i++)
        if (PyArray_DIM(ARRAY(array), i) != 1 && PyArray_DIM(ARRAY(array), i) != PyArray_DIM(ARRAY(target), i + added))
            return 0;
    return 1;
}
