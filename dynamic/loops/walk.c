/* history and walk: what led to some tensors, and the pass back along it. */

#include "inputs.h"

typedef struct {
    Py_ssize_t sequence;
    PyObject *entry;
} Dated;

static int
earlier(const void *x, const void *y)
{
    Py_ssize_t a = ((const Dated *)x)->sequence, b = ((const Dated *)y)->sequence;
    return (a > b) - (a < b);
}

static int
sort_by_sequence(PyObject *entries)
{
    Py_ssize_t size = PyList_GET_SIZE(entries);
    Dated *dated = PyMem_New(Dated, size + 1);
    if (dated == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < size && !PyErr_Occurred(); i++) {
        dated[i].entry = PyList_GET_ITEM(entries, i);
        dated[i].sequence = number_in(dated[i].entry, at.sequence);
    }
    int failed = PyErr_Occurred() != NULL;
    if (!failed)
        qsort(dated, (size_t)size, sizeof(Dated), earlier);
    for (Py_ssize_t i = 0; i < size && !failed; i++)
        PyList_SET_ITEM(entries, i, dated[i].entry);
    PyMem_Free(dated);
    return failed ? -1 : 0;
}

static int
visit(PyObject *edge, PyObject *seen, PyObject *entries, PyObject *leaves)
{
    if (edge == Py_None)
        return 0;
    if (!is_edge(edge)) {
        PyErr_Format(PyExc_TypeError, "an entry or a leaf, not a %s", Py_TYPE(edge)->tp_name);
        return -1;
    }
    Py_ssize_t before = PySet_GET_SIZE(seen);
    if (PySet_Add(seen, edge) < 0)
        return -1;
    if (PySet_GET_SIZE(seen) == before)
        return 0;
    return Py_IS_TYPE(edge, Entry) ? PyList_Append(entries, edge) : PySet_Add(leaves, edge);
}

/* history(roots): every entry that led to the roots, the latest last, and every leaf. */
PyObject *
history(PyObject *Py_UNUSED(module), PyObject *roots)
{
    PyObject *entries = PyList_New(0), *leaves = PySet_New(NULL), *seen = PySet_New(NULL), *result = NULL;
    PyObject *first = PySequence_Tuple(roots);
    if (entries == NULL || leaves == NULL || seen == NULL || first == NULL)
        goto done;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(first); i++)
        if (visit(PyTuple_GET_ITEM(first, i), seen, entries, leaves) < 0)
            goto done;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entries); i++) {  /* which grows meanwhile */
        PyObject *edges = slot_of(PyList_GET_ITEM(entries, i), at.edges);
        PyObject *listed = edges == NULL ? NULL : PySequence_Tuple(edges);
        int failed = listed == NULL;
        for (Py_ssize_t j = 0; !failed && j < PyTuple_GET_SIZE(listed); j++)
            failed = visit(PyTuple_GET_ITEM(listed, j), seen, entries, leaves);
        Py_XDECREF(listed);
        if (failed)
            goto done;
    }
    if (sort_by_sequence(entries) == 0)
        result = PyTuple_Pack(2, entries, leaves);
done:
    Py_XDECREF(entries);
    Py_XDECREF(leaves);
    Py_XDECREF(seen);
    Py_XDECREF(first);
    return result;
}

static int
needs_attention(PyObject *entry)  /* also where its slots hold what they do not as a rule */
{
    PyObject *saved = SLOT(entry, at.saved);
    if (saved == NULL || !PyTuple_CheckExact(saved) || SLOT(entry, at.hooks) != Py_None)
        return 1;
    Py_ssize_t sequence = number_in(entry, at.sequence), latest = number_in(clock_, at.latest);
    if (sequence >= 0 && latest >= 0)
        return sequence < latest;
    PyErr_Clear();
    return 1;
}

/* What carries the cotangent of an entry back: a new reference. */
static PyObject *
way_back(PyObject *entry, PyObject *by_rules)
{
    PyObject *pullback = SLOT(entry, at.pullback), *apply = NULL;
    if (PyDict_GET_SIZE(detours) == 0 && pullback != NULL && Py_IS_TYPE(pullback, Pullback))
        apply = SLOT(pullback, at.apply);
    return Py_NewRef(apply == NULL ? by_rules : apply);
}

static int
pass_back(PyObject *apply, PyObject *entry, PyObject *cotangents, PyObject *keep)
{
    PyObject *pullback = SLOT(entry, at.pullback);
    if (pullback != NULL && Py_IS_TYPE(pullback, Pullback) && SLOT(pullback, at.frees) == Py_False)
        keep = Py_True;
    if (Py_IS_TYPE(apply, &ProgramType)) {
        int done = run_program(apply, entry, keep == Py_True, cotangents);
        if (done)
            return done < 0 ? -1 : 0;
    }
    PyObject *args[] = {entry, keep, cotangents};
    PyObject *result = PyObject_Vectorcall(apply, args, 3, NULL);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* What is reached at the end of the way: a new reference. */
static PyObject *
after_hooks(PyObject *edge, PyObject *cotangent, PyObject *hooked)
{
    if (edge == Py_None || !is_edge(edge)) {
        PyErr_Format(PyExc_TypeError, "an entry or a leaf, not a %s", Py_TYPE(edge)->tp_name);
        return NULL;
    }
    PyObject *hooks = slot_of(edge, Py_IS_TYPE(edge, Leaf) ? at.leaf_hooks : at.hooks), *both[] = {edge, cotangent};
    if (hooks == NULL)
        return NULL;
    if (hooks == Py_None)
        return Py_NewRef(cotangent);
    Py_INCREF(hooks);
    int any = PyObject_IsTrue(hooks);
    Py_DECREF(hooks);
    return any < 0 ? NULL : any ? PyObject_Vectorcall(hooked, both, 2, NULL) : Py_NewRef(cotangent);
}

static int
reach_leaves(PyObject *reached, PyObject *cotangents, PyObject *hooked)
{
    PyObject *pairs = PyDict_Items(cotangents);  /* as they are before hooks run */
    int failed = pairs == NULL;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(pairs); i++) {
        PyObject *pair = PyList_GET_ITEM(pairs, i), *edge = PyTuple_GET_ITEM(pair, 0);
        PyObject *value = after_hooks(edge, PyTuple_GET_ITEM(pair, 1), hooked);
        failed = value == NULL || PyDict_SetItem(reached, edge, value) < 0;
        Py_XDECREF(value);
    }
    Py_XDECREF(pairs);
    return failed ? -1 : 0;
}

/* Put the cotangent of an entry into `reached`, if it is wanted. */
static int
reach_entry(PyObject *entry, PyObject *cotangents, PyObject *reached, PyObject *wanted)
{
    int is_wanted = PySet_GET_SIZE(wanted) == 0 ? 0 : PySet_Contains(wanted, entry);
    if (is_wanted <= 0)
        return is_wanted;
    PyObject *cotangent = PyDict_GetItemWithError(cotangents, entry);
    if (cotangent == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetObject(PyExc_KeyError, entry);
        return -1;
    }
    Py_INCREF(cotangent);
    int failed = PyDict_SetItem(reached, entry, cotangent);
    Py_DECREF(cotangent);
    return failed;
}

/* The last of the entries passes its cotangent back, if one has arrived at it. */
static int
visit_last(PyObject *const *args)
{
    PyObject *entries = args[0], *cotangents = args[1], *attend = args[5];
    Py_ssize_t last = PyList_GET_SIZE(entries) - 1;
    PyObject *entry = Py_NewRef(PyList_GET_ITEM(entries, last));
    int failed = PySequence_DelItem(entries, last);
    if (!failed && !Py_IS_TYPE(entry, Entry)) {
        PyErr_SetString(PyExc_TypeError, "walk takes entries");
        failed = -1;
    }
    int arrived = failed ? 0 : PyDict_Contains(cotangents, entry);
    if (arrived > 0 && needs_attention(entry)) {
        PyObject *both[] = {entry, cotangents};
        PyObject *done = PyObject_Vectorcall(attend, both, 2, NULL);
        Py_XDECREF(done);
        failed = done == NULL;
    }
    if (arrived > 0 && !failed)
        failed = reach_entry(entry, cotangents, args[2], args[3]);
    if (arrived > 0 && !failed) {
        PyObject *apply = way_back(entry, args[7]);
        failed = pass_back(apply, entry, cotangents, args[4]);
        Py_DECREF(apply);
    }
    Py_DECREF(entry);
    return failed || arrived < 0 ? -1 : 0;
}

/* walk(entries, cotangents, reached, wanted, keep, attend, hooked, by_rules): visit the entries, the latest first, and
   put into `reached` the cotangents of the leaves, and of the entries that are wanted. Once somebody observes ops, as a
   hook may begin to, an entry passes its cotangent back by the rules, and the rest is left to Python: False. */
PyObject *
walk(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count_)
{
    if (count_ != 8 || !PyList_CheckExact(args[0]) || !PyDict_CheckExact(args[1]) || !PyDict_CheckExact(args[2])
        || !PyAnySet_CheckExact(args[3]) || !PyBool_Check(args[4])) {
        PyErr_SetString(PyExc_TypeError, "walk takes entries, cotangents, reached, wanted, keep and three functions");
        return NULL;
    }
    while (PyList_GET_SIZE(args[0]) != 0) {
        if (PyDict_GET_SIZE(detours) != 0)
            Py_RETURN_FALSE;
        if (visit_last(args) < 0)
            return NULL;
    }
    if (reach_leaves(args[2], args[1], args[6]) < 0)
        return NULL;
    Py_RETURN_TRUE;
}
