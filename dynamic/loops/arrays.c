/* Arrays: who is told of them, and when their memory may take another result. */

#include "loops.h"

PyObject *
made(PyObject *value)  /* the same of what has just been made: whoever watches is told of it */
{
    PyObject *array = as_array(value);
    for (Py_ssize_t i = 0; array != NULL && i < PyList_GET_SIZE(watchers); i++) {
        PyObject *done = PyObject_CallOneArg(PyList_GET_ITEM(watchers, i), array);
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
    return Py_IS_TYPE(array, ndarray) && Py_REFCNT(array) == 1 && (ARRAY(array)->flags & CARRAY) == CARRAY
           && ARRAY(array)->base == NULL && nbytes_of(array) >= reuse_from;
}

/* What `matrix_product` in graphs/ops/linalg.py chooses for two arrays. */
static PyObject *
chosen_product(PyObject *x, PyObject *y)
{
    enum { FLOAT32 = 11, FLOAT64 = 12 };
    if (!Py_IS_TYPE(x, ndarray) || !Py_IS_TYPE(y, ndarray) || ARRAY(x)->ndim != 2 || ARRAY(y)->ndim != 2
        || ARRAY(x)->dtype != ARRAY(y)->dtype || ARRAY(x)->shape[0] * ARRAY(y)->shape[1] > small)
        return matmul;
    int number = DTYPE(ARRAY(x)->dtype)->number;
    return number == FLOAT32 || number == FLOAT64 ? dot : matmul;
}

PyObject *
call_kernel(PyObject *kernel, PyObject *const *args, Py_ssize_t count_, PyObject *attrs)  /* attrs: a dict, or NULL */
{
    if (kernel == product && attrs == NULL && count_ == 2)
        kernel = chosen_product(args[0], args[1]);  /* without the Python around it */
    return attrs == NULL ? PyObject_Vectorcall(kernel, args, (size_t)count_, NULL)
                         : PyObject_VectorcallDict(kernel, args, (size_t)count_, attrs);
}

PyObject *
call_into(PyObject *kernel, PyObject *const *args, Py_ssize_t count_, PyObject *out)
{
    PyObject *all[MOST_ARGUMENTS + 1];
    memcpy(all, args, (size_t)count_ * sizeof(PyObject *));
    all[count_] = out;
    return PyObject_Vectorcall(kernel, all, (size_t)count_, out_only);
}

int
fits_into(PyObject *array, PyObject *target)  /* by broadcasting, without a change of dtype */
{
    int added = ARRAY(target)->ndim - ARRAY(array)->ndim;
    if (added < 0 || ARRAY(array)->dtype != ARRAY(target)->dtype)
        return 0;
    for (int i = 0; i < ARRAY(array)->ndim; i++)
        if (ARRAY(array)->shape[i] != 1 && ARRAY(array)->shape[i] != ARRAY(target)->shape[i + added])
            return 0;
    return 1;
}
