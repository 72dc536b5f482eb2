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

/* Whether the memory of an array, to which `references` are ours, may be written over: nobody else sees it, as the
   array, as the base of it, or as the memory that a pool has laid under it (blocks.py: a block holds two arrays of its
   own). */
int
is_ours(PyObject *array, Py_ssize_t references)
{
    if (!Py_IS_TYPE(array, ndarray) || Py_REFCNT(array) != references || (ARRAY(array)->flags & CARRAY) != CARRAY)
        return 0;
    PyObject *base = ARRAY(array)->base;
    return base == NULL || (Py_IS_TYPE(base, Memory) && Py_REFCNT(base) <= 2 && Py_REFCNT(ARRAY(base)->base) <= 2);
}

PyObject *
call_into(PyObject *kernel, PyObject *const *args, Py_ssize_t count_, PyObject *out)
{
    PyObject *all[MOST_ARGUMENTS + 1];
    memcpy(all, args, (size_t)count_ * sizeof(PyObject *));
    all[count_] = out;
    return PyObject_Vectorcall(kernel, all, (size_t)count_, out_only);
}

PyObject *
call_for_pool(PyObject *op, PyObject *const *args, Py_ssize_t count_, PyObject *attrs)
{
    PyObject *inputs = PyTuple_New(count_);
    for (Py_ssize_t i = 0; inputs != NULL && i < count_; i++)
        PyTuple_SET_ITEM(inputs, i, Py_NewRef(args[i]));
    PyObject *all[] = {op, inputs, attrs};
    PyObject *runner = Py_NewRef(PyList_GET_ITEM(runners, PyList_GET_SIZE(runners) - 1));
    PyObject *out = inputs == NULL ? NULL : PyObject_Vectorcall(runner, all, 3, NULL);
    Py_DECREF(runner);
    Py_XDECREF(inputs);
    return out;
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
