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

/* Shapes, as graphs/dims.py has them: a tuple whose slices are shapes again. */

PyObject *
sizes(PyObject *Py_UNUSED(module), PyObject *tensor)
{
    if (!PyObject_TypeCheck(tensor, Tensor))
        return PyErr_Format(PyExc_TypeError, "a shape of a %s", Py_TYPE(tensor)->tp_name);
    PyObject *array = typed_slot(tensor, at.data, &PyArray_Type);
    PyObject *shape = array == NULL ? NULL : Sizes->tp_alloc(Sizes, PyArray_NDIM(ARRAY(array)));
    for (int i = 0; shape != NULL && i < PyArray_NDIM(ARRAY(array)); i++) {
        PyObject *size = PyLong_FromSsize_t(PyArray_DIM(ARRAY(array), i));
        if (size == NULL)
            Py_CLEAR(shape);
        else
            PyTuple_SET_ITEM(shape, i, size);
    }
    return shape;
}

static PyObject *
sizes_at(PyObject *shape, PyObject *key)
{
    PyObject *part = PyTuple_Type.tp_as_mapping->mp_subscript(shape, key);
    if (part == NULL || !PySlice_Check(key))
        return part;
    PyObject *made_ = PyObject_CallOneArg((PyObject *)Sizes, part);
    Py_DECREF(part);
    return made_;
}

static PyMethodDef sizes_getitem = {"__getitem__", sizes_at, METH_O | METH_COEXIST, "The size of an axis, or some."};

PyObject *
getitem_of_sizes(void)  /* what `Sizes.__getitem__` may be */
{
    return PyDescr_NewMethod(Sizes, &sizes_getitem);
}

/* Of two axes of a result: 1 where the first is further out, -1 where it is further in, 0 where no array tells. */
static int
compare(PyObject *out, PyObject *const *arrays, Py_ssize_t count_, int axis, int other)
{
    int ndim = PyArray_NDIM(ARRAY(out)), axes[] = {axis, other};
    for (Py_ssize_t i = 0; i < count_; i++) {
        PyArrayObject *array = ARRAY(arrays[i]);
        npy_intp steps[2];
        for (int j = 0; j < 2; j++) {
            int own = axes[j] - ndim + PyArray_NDIM(array);
            int is_spread = own < 0 || (PyArray_DIM(array, own) == 1 && PyArray_DIM(ARRAY(out), axes[j]) != 1);
            steps[j] = is_spread ? 0 : Py_ABS(PyArray_STRIDE(array, own));
        }
        if (steps[0] == 0 || steps[1] == 0)
            continue;
        if (steps[0] != steps[1] || PyArray_DIM(ARRAY(out), axis) > PyArray_DIM(ARRAY(out), other))
            return steps[0] >= steps[1] ? 1 : -1;
    }
    return 0;
}

static void
order_axes(int *order, PyObject *out, PyObject *const *arrays, Py_ssize_t count_)  /* the inner axis first */
{
    int ndim = PyArray_NDIM(ARRAY(out));
    for (int i = 0; i < ndim; i++)
        order[i] = ndim - 1 - i;
    for (int last = 1; last < ndim; last++)
        for (int place = last, before = last - 1; before >= 0; before--) {
            int sign = compare(out, arrays, count_, order[before], order[place]);
            if (sign < 0)
                break;
            if (sign > 0) {
                int axis = order[before];
                order[before] = order[place];
                order[place] = axis;
                place = before;
            }
        }
}

/* `lay` in graphs/ops/shapes.py: a result in memory as PyTorch lays it. Takes a reference and gives one. */
PyObject *
lay(PyObject *out, PyObject *const *arrays, Py_ssize_t count_)
{
    int ndim = PyArray_NDIM(ARRAY(out)), order[NPY_MAXDIMS], is_alike = 1, in_rows = 1;
    npy_intp strides[NPY_MAXDIMS], step = PyArray_ITEMSIZE(ARRAY(out));
    for (Py_ssize_t i = 0; i < count_; i++)
        in_rows &= PyArray_IS_C_CONTIGUOUS(ARRAY(arrays[i])) != 0;
    if ((in_rows && PyArray_IS_C_CONTIGUOUS(ARRAY(out))) || PyArray_SIZE(ARRAY(out)) == 0)
        return out;
    order_axes(order, out, arrays, in_rows ? 0 : count_);
    for (int i = 0; i < ndim; i++) {
        int axis = order[i];
        is_alike &= PyArray_DIM(ARRAY(out), axis) == 1 || PyArray_STRIDE(ARRAY(out), axis) == step;
        strides[axis] = step;
        step *= PyArray_DIM(ARRAY(out), axis);
    }
    if (is_alike)
        return out;
    PyArray_Descr *dtype = (PyArray_Descr *)Py_NewRef(dtype_of(out));
    PyObject *result = PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, PyArray_DIMS(ARRAY(out)), strides, NULL, 0, NULL);
    if (result != NULL && PyArray_CopyInto(ARRAY(result), ARRAY(out)) < 0)
        Py_CLEAR(result);
    Py_DECREF(out);
    return made(result);
}

int
disagree(PyObject *first, PyObject *second)  /* as in graphs/ops/shapes.py */
{
    int flags = PyArray_FLAGS(ARRAY(first)) & PyArray_FLAGS(ARRAY(second));
    return !(flags & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS)) && PyArray_NDIM(ARRAY(first)) > 1
           && PyArray_NDIM(ARRAY(second)) > 1;
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
