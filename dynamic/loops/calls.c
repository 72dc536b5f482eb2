/* Calls: what was found out about earlier calls, by the shapes and dtypes of their arrays and all else they were told.

   Options are compared by type and value, through tuples and slices, and no code of theirs runs: 1, 1.0 and True are
   three options, and so are 0.0 and -0.0. The call found is moved to the front, so that the next is found sooner. */

#include "inputs.h"

#define MOST_CALLS 16  /* in a bucket */

struct Call {
    Call *next;
    PyObject *value, *names;
    Py_ssize_t count, total, positional;  /* of inputs, options, and options without a name */
    PyObject **dtypes, **options;
    int *ndims;
    Py_ssize_t *sizes;  /* of all axes of all inputs, one after the other */
};

static int
is_same(PyObject *value, PyObject *other)  /* of values of which `is_plain` holds for one */
{
    if (value == other)
        return 1;
    if (Py_TYPE(value) != Py_TYPE(other))
        return 0;
    if (PyLong_CheckExact(value) || PyUnicode_CheckExact(value))
        return PyObject_RichCompareBool(value, other, Py_EQ) == 1;
    if (PyFloat_CheckExact(value))
        return memcmp(&((PyFloatObject *)value)->ob_fval, &((PyFloatObject *)other)->ob_fval, sizeof(double)) == 0;
    if (PySlice_Check(value)) {
        PySliceObject *one = (PySliceObject *)value, *two = (PySliceObject *)other;
        return is_same(one->start, two->start) && is_same(one->stop, two->stop) && is_same(one->step, two->step);
    }
    if (!PyTuple_Check(value) || PyTuple_GET_SIZE(value) != PyTuple_GET_SIZE(other))
        return 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++)
        if (!is_same(PyTuple_GET_ITEM(value, i), PyTuple_GET_ITEM(other, i)))
            return 0;
    return 1;
}

/* Whether a value is known by `is_same` for good: one that nothing can change. */
static int
is_plain(PyObject *value, int nested)
{
    if (nested > MOST_NESTED)
        return 0;
    if (PySlice_Check(value)) {
        PySliceObject *one = (PySliceObject *)value;
        return is_plain(one->start, nested + 1) && is_plain(one->stop, nested + 1) && is_plain(one->step, nested + 1);
    }
    if (PyTuple_Check(value) && Py_TYPE(value)->tp_dictoffset == 0) {  /* a named one, too */
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++)
            if (!is_plain(PyTuple_GET_ITEM(value, i), nested + 1))
                return 0;
        return 1;
    }
    return value == Py_None || value == Py_Ellipsis || PyBool_Check(value) || PyLong_CheckExact(value)
           || PyFloat_CheckExact(value) || PyUnicode_CheckExact(value) || PyType_Check(value)
           || PyObject_TypeCheck(value, dtype_type);
}

static int
are_same(PyObject *names, PyObject *others)  /* the names of options, or NULL */
{
    return names == others || (names != NULL && others != NULL && is_same(names, others));
}

static int
is_like(const Call *call, const Inputs *inputs, PyObject *const *options, Py_ssize_t positional, PyObject *names)
{
    if (call->count != inputs->count || call->positional != positional || !are_same(call->names, names))
        return 0;
    const Py_ssize_t *sizes = call->sizes;
    for (Py_ssize_t i = 0; i < call->count; i++) {
        const Array *array = ARRAY(inputs->arrays[i]);
        if (array->dtype != call->dtypes[i] || array->ndim != call->ndims[i])
            return 0;
        for (int axis = 0; axis < array->ndim; axis++)
            if (array->shape[axis] != *sizes++)
                return 0;
    }
    for (Py_ssize_t i = 0; i < call->total; i++)
        if (!is_same(call->options[i], options[i]))
            return 0;
    return 1;
}

static size_t
sum_of(PyObject *value, int nested)  /* the same for what is the same */
{
    size_t sum = 0;
    if (PyLong_CheckExact(value))
        return (size_t)PyObject_Hash(value);
    for (Py_ssize_t i = 0; nested < MOST_NESTED && PyTuple_Check(value) && i < PyTuple_GET_SIZE(value); i++)
        sum = sum * 31 + sum_of(PyTuple_GET_ITEM(value, i), nested + 1);
    return sum;
}

static int
bucket_of(const Inputs *inputs, PyObject *const *options, Py_ssize_t total)
{
    size_t sum = 0;
    for (Py_ssize_t i = 0; i < total; i++)
        sum = sum * 31 + sum_of(options[i], 0);
    for (Py_ssize_t i = 0; i < inputs->count; i++)
        for (int axis = 0; axis < ARRAY(inputs->arrays[i])->ndim; axis++)
            sum = sum * 31 + (size_t)ARRAY(inputs->arrays[i])->shape[axis];
    return (int)((sum ^ sum >> 5 ^ sum >> 10) % BUCKETS);
}

PyObject *
find_call(Calls *calls, const Inputs *inputs, PyObject *const *options, Py_ssize_t positional, PyObject *names)
{
    int bucket = bucket_of(inputs, options, positional + (names == NULL ? 0 : PyTuple_GET_SIZE(names)));
    for (Call **place = &calls->latest[bucket]; *place != NULL; place = &(*place)->next) {
        Call *call = *place;
        if (!is_like(call, inputs, options, positional, names))
            continue;
        *place = call->next;
        call->next = calls->latest[bucket];
        calls->latest[bucket] = call;
        return Py_NewRef(call->value);
    }
    return NULL;
}

static void
free_call(Call *call)
{
    Py_DECREF(call->value);
    Py_XDECREF(call->names);
    for (Py_ssize_t i = 0; i < call->count; i++)
        Py_DECREF(call->dtypes[i]);
    for (Py_ssize_t i = 0; i < call->total; i++)
        Py_DECREF(call->options[i]);
    PyMem_Free(call->dtypes);
    PyMem_Free(call->options);
    PyMem_Free(call->ndims);
    PyMem_Free(call->sizes);
    PyMem_Free(call);
}

/* Room for a call, or NULL with an error set. */
static Call *
new_call(Py_ssize_t count_, Py_ssize_t axes, Py_ssize_t total)
{
    Call *call = PyMem_Calloc(1, sizeof(Call));
    if (call == NULL)
        return (Call *)PyErr_NoMemory();
    call->value = Py_NewRef(Py_None);
    call->dtypes = PyMem_New(PyObject *, count_ + 1);
    call->options = PyMem_New(PyObject *, total + 1);
    call->ndims = PyMem_New(int, count_ + 1);
    call->sizes = PyMem_New(Py_ssize_t, axes + 1);
    if (call->dtypes == NULL || call->options == NULL || call->ndims == NULL || call->sizes == NULL) {
        free_call(call);
        return (Call *)PyErr_NoMemory();
    }
    return call;
}

static void
drop_oldest(Calls *calls, int bucket)
{
    Call **place = &calls->latest[bucket];
    while ((*place)->next != NULL)
        place = &(*place)->next;
    Call *call = *place;
    *place = NULL;
    calls->counts[bucket]--;
    free_call(call);  /* last: what it held may run anything as it goes */
}

int  /* 1 if it is kept, 0 if it is no plain call, -1 with an error set */
keep_call(Calls *calls, const Inputs *inputs, PyObject *const *options, Py_ssize_t positional, PyObject *names,
          PyObject *value)
{
    Py_ssize_t total = positional + (names == NULL ? 0 : PyTuple_GET_SIZE(names)), axes = 0;
    for (Py_ssize_t i = 0; i < total; i++)
        if (!is_plain(options[i], 0))
            return 0;
    for (Py_ssize_t i = 0; i < inputs->count; i++)
        axes += ARRAY(inputs->arrays[i])->ndim;
    Call *call = new_call(inputs->count, axes, total);
    if (call == NULL)
        return -1;
    Py_ssize_t *sizes = call->sizes;
    for (Py_ssize_t i = 0; i < inputs->count; i++) {
        const Array *array = ARRAY(inputs->arrays[i]);
        call->dtypes[i] = Py_NewRef(array->dtype);
        call->ndims[i] = array->ndim;
        for (int axis = 0; axis < array->ndim; axis++)
            *sizes++ = array->shape[axis];
        call->count++;
    }
    for (; call->total < total; call->total++)
        call->options[call->total] = Py_NewRef(options[call->total]);
    call->positional = positional;
    call->names = Py_XNewRef(names);
    Py_SETREF(call->value, Py_NewRef(value));
    int bucket = bucket_of(inputs, options, total);
    call->next = calls->latest[bucket];
    calls->latest[bucket] = call;
    if (++calls->counts[bucket] > MOST_CALLS)
        drop_oldest(calls, bucket);
    return 1;
}

PyObject *
list_calls(const Calls *calls)  /* pairs of options and what was kept of them */
{
    PyObject *list = PyList_New(0);
    int collects = PyGC_Disable();  /* which may run anything, a call among it */
    for (int bucket = 0; list != NULL && bucket < BUCKETS; bucket++)
        for (Call *call = calls->latest[bucket]; list != NULL && call != NULL; call = call->next) {
            PyObject *options = PyTuple_New(call->total), *pair = NULL;
            for (Py_ssize_t i = 0; options != NULL && i < call->total; i++)
                PyTuple_SET_ITEM(options, i, Py_NewRef(call->options[i]));
            if (options != NULL)
                pair = PyTuple_Pack(2, options, call->value);
            if (pair == NULL || PyList_Append(list, pair) < 0)
                Py_CLEAR(list);
            Py_XDECREF(options);
            Py_XDECREF(pair);
        }
    if (collects)
        PyGC_Enable();
    return list;
}

int
visit_calls(Calls *calls, visitproc visit, void *arg)
{
    for (int bucket = 0; bucket < BUCKETS; bucket++)
        for (Call *call = calls->latest[bucket]; call != NULL; call = call->next) {
            Py_VISIT(call->value);
            for (Py_ssize_t i = 0; i < call->total; i++)
                Py_VISIT(call->options[i]);
        }
    return 0;
}

void
free_calls(Calls *calls)
{
    for (int bucket = 0; bucket < BUCKETS; bucket++)
        while (calls->latest[bucket] != NULL) {
            Call *call = calls->latest[bucket];
            calls->latest[bucket] = call->next;
            free_call(call);
        }
}
