/* Calls: what was found out about earlier calls, by the shapes and dtypes of their arrays and all else they were told.

   A call is read as words: of an array the dtype and the sizes, of an option the type and the value, through tuples and
   slices. Equal words are equal calls, and no code of the options' runs: 1, 1.0 and True are three options, and so are
   0.0 and -0.0. The call found is moved to the front, so that the next is found sooner. */

#include "inputs.h"

#define MOST_CALLS 16  /* in a bucket */
#define MOST_WORDS 512

struct Call {
    Call *next;
    PyObject *options, *held, *value;  /* `held` are the dtypes whose addresses are among the words */
    size_t count;
    uint64_t words[];
};

typedef struct {
    size_t count;
    uint64_t words[MOST_WORDS];
} Key;

static int
push(Key *key, uint64_t word)  /* 0 where there is no room, as below where a call is not to be remembered */
{
    if (key->count == MOST_WORDS)
        return 0;
    key->words[key->count++] = word;
    return 1;
}

static int
add_text(Key *key, PyObject *text)
{
    Py_ssize_t size;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &size);
    if (bytes == NULL) {
        PyErr_Clear();  /* of half a character */
        return 0;
    }
    int fits = push(key, (uint64_t)size);
    for (Py_ssize_t i = 0; fits && i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, (size_t)Py_MIN(size - i, 8));
        fits = push(key, word);
    }
    return fits;
}

static int
add_option(Key *key, PyObject *value, int nested)  /* one that nothing can change */
{
    int overflow = 0, fits = nested <= MOST_NESTED && push(key, (uintptr_t)Py_TYPE(value));
    if (!fits || value == Py_None || value == Py_Ellipsis)
        return fits;
    if (PyLong_CheckExact(value) || PyBool_Check(value))
        return push(key, (uint64_t)PyLong_AsLongLongAndOverflow(value, &overflow)) && !overflow;
    if (PyFloat_CheckExact(value)) {
        double number = PyFloat_AS_DOUBLE(value);
        uint64_t bits;
        memcpy(&bits, &number, sizeof bits);
        return push(key, bits);
    }
    if (PyUnicode_CheckExact(value))
        return add_text(key, value);
    if (PySlice_Check(value)) {
        PySliceObject *slice = (PySliceObject *)value;
        return add_option(key, slice->start, nested + 1) && add_option(key, slice->stop, nested + 1)
               && add_option(key, slice->step, nested + 1);
    }
    if (PyTuple_Check(value) && Py_TYPE(value)->tp_dictoffset == 0) {  /* a named one, too */
        fits = push(key, (uint64_t)PyTuple_GET_SIZE(value));
        for (Py_ssize_t i = 0; fits && i < PyTuple_GET_SIZE(value); i++)
            fits = add_option(key, PyTuple_GET_ITEM(value, i), nested + 1);
        return fits;
    }
    return (PyType_Check(value) || PyObject_TypeCheck(value, &PyArrayDescr_Type)) && push(key, (uintptr_t)value);
}

static Py_ssize_t
total_of(Py_ssize_t positional, PyObject *names)  /* options */
{
    return positional + (names == NULL ? 0 : PyTuple_GET_SIZE(names));
}

static int
read_key(Key *key, const Inputs *inputs, PyObject *const *options, Py_ssize_t positional, PyObject *names)
{
    int fits = 1;
    key->count = 0;
    for (Py_ssize_t i = 0; fits && i < inputs->count; i++) {
        PyArrayObject *array = ARRAY(inputs->arrays[i]);
        fits = push(key, (uintptr_t)PyArray_DESCR(array)) && push(key, (uint64_t)PyArray_NDIM(array));
        for (int axis = 0; fits && axis < PyArray_NDIM(array); axis++)
            fits = push(key, (uint64_t)PyArray_DIM(array, axis));
    }
    fits = fits && push(key, (uint64_t)positional) && (names == NULL || add_option(key, names, 0));
    for (Py_ssize_t i = 0; fits && i < total_of(positional, names); i++)
        fits = add_option(key, options[i], 0);
    return fits;
}

int
is_plain_call(const Inputs *inputs, PyObject *const *options, Py_ssize_t positional, PyObject *names)  /* one to be kept */
{
    Key key;
    return read_key(&key, inputs, options, positional, names);
}

static Call **
bucket_of(Calls *calls, const Key *key)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < key->count; i++)
        sum = (sum ^ key->words[i]) * 0x9E3779B97F4A7C15;
    return &calls->latest[(sum >> 32) % BUCKETS];
}

PyObject *
find_call(Calls *calls, const Inputs *inputs, PyObject *const *options, Py_ssize_t positional, PyObject *names)
{
    Key key;
    if (!read_key(&key, inputs, options, positional, names))
        return NULL;
    Call **first = bucket_of(calls, &key);
    for (Call **place = first; *place != NULL; place = &(*place)->next) {
        Call *call = *place;
        if (call->count != key.count || memcmp(call->words, key.words, key.count * sizeof(uint64_t)) != 0)
            continue;
        *place = call->next;
        call->next = *first;
        *first = call;
        return Py_NewRef(call->value);
    }
    return NULL;
}

static void
free_call(Call *call)
{
    Py_DECREF(call->options);
    Py_DECREF(call->held);
    Py_DECREF(call->value);
    PyMem_Free(call);
}

static void
drop_oldest(Call **place)  /* of a bucket, where that is full */
{
    for (int i = 0; *place != NULL && i < MOST_CALLS; i++)
        place = &(*place)->next;
    Call *call = *place;
    if (call != NULL) {
        *place = NULL;
        free_call(call);  /* last: what it held may run anything as it goes */
    }
}

int  /* 1 if it is kept, 0 if it is no plain call, -1 with an error set */
keep_call(Calls *calls, const Inputs *inputs, PyObject *const *options, Py_ssize_t positional, PyObject *names,
          PyObject *value)
{
    Py_ssize_t total = total_of(positional, names);
    PyObject *all = PyTuple_New(total), *held = PyTuple_New(inputs->count);  /* before the key: this may run anything */
    for (Py_ssize_t i = 0; all != NULL && i < total; i++)
        PyTuple_SET_ITEM(all, i, Py_NewRef(options[i]));
    for (Py_ssize_t i = 0; held != NULL && i < inputs->count; i++)
        PyTuple_SET_ITEM(held, i, Py_NewRef(dtype_of(inputs->arrays[i])));
    Key key;
    int is_plain = all != NULL && held != NULL && read_key(&key, inputs, options, positional, names);
    Call *call = is_plain ? PyMem_Malloc(offsetof(Call, words) + key.count * sizeof(uint64_t)) : NULL;
    if (is_plain && call == NULL)
        PyErr_NoMemory();
    if (call == NULL) {
        Py_XDECREF(all);
        Py_XDECREF(held);
        return PyErr_Occurred() ? -1 : 0;
    }
    memcpy(call->words, key.words, key.count * sizeof(uint64_t));
    call->count = key.count;
    call->value = Py_NewRef(value);
    call->options = all;
    call->held = held;
    Call **first = bucket_of(calls, &key);
    call->next = *first;
    *first = call;
    drop_oldest(first);
    return 1;
}

PyObject *
list_calls(const Calls *calls)  /* pairs of options and what was kept of them */
{
    PyObject *list = PyList_New(0);
    int collects = PyGC_Disable();  /* which may run anything, a call among it */
    for (int bucket = 0; list != NULL && bucket < BUCKETS; bucket++)
        for (Call *call = calls->latest[bucket]; list != NULL && call != NULL; call = call->next) {
            PyObject *pair = PyTuple_Pack(2, call->options, call->value);
            if (pair == NULL || PyList_Append(list, pair) < 0)
                Py_CLEAR(list);
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
            Py_VISIT(call->options);
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
