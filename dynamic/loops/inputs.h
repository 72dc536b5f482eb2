/* Inputs: what an op reads, held while it runs. In a header, as every op goes through it: a call costs as much again. */

#ifndef GRAPHDUEL_INPUTS_H
#define GRAPHDUEL_INPUTS_H

#include "loops.h"
#include <math.h>

#define MOST_NESTED 32 /* tuples in tuples that are looked through: what is deeper goes to Python, which minds its stack */

/* The inputs of an op: their arrays, or Python numbers to be made arrays, and their edges. All references are held. */
struct Inputs {
    Py_ssize_t count, numbers, tensors;  /* how many there are, and how many of each are among them */
    PyObject *arrays[MOST_INPUTS], *edges[MOST_INPUTS];
    char is_number[MOST_INPUTS], is_tensor[MOST_INPUTS];
};

static inline int
must_stand_aside(void)  /* while this holds anything, ops go to the interpreter */
{
    return PyDict_GET_SIZE(detours) != 0;
}

static inline int
is_edge(PyObject *object)
{
    return object == Py_None || Py_IS_TYPE(object, Entry) || Py_IS_TYPE(object, Leaf);
}

/* inplace.precedes_change(edge) */
static inline int
precedes_change(PyObject *edge)
{
    if (!Py_IS_TYPE(edge, Entry))
        return 0;
    Py_ssize_t sequence = number_in(edge, at.sequence), rewritten = number_in(clock_, at.rewritten);
    if (sequence >= 0 && rewritten >= 0)
        return sequence < rewritten;
    PyErr_Clear();
    return 1;  /* the interpreter tells what is wrong with the slots */
}

/* A Python number that is one key with no other: -0.0 would be that of 0.0, and NaN is never found again. */
static inline int
is_number(PyObject *value)
{
    if (PyFloat_CheckExact(value))
        return PyFloat_AS_DOUBLE(value) != 0 ? !Py_IS_NAN(PyFloat_AS_DOUBLE(value))
                                             : copysign(1, PyFloat_AS_DOUBLE(value)) > 0;
    return PyLong_CheckExact(value) || PyBool_Check(value);
}

/* Hold the arrays and edges of some values, and numbers where they may be. 0 where the interpreter has to look. */
static inline int
hold(Inputs *inputs, PyObject *const *values, Py_ssize_t count_, int takes_numbers)
{
    inputs->count = inputs->numbers = inputs->tensors = 0;
    if (count_ > MOST_INPUTS)
        return 0;
    for (Py_ssize_t i = 0; i < count_; i++) {
        PyObject *array = values[i], *edge = Py_None;
        int is_one = 0, is_tensor = Py_IS_TYPE(array, Tensor);
        if (is_tensor) {
            edge = SLOT(array, at.edge);
            array = SLOT(array, at.data);
            if (array == NULL || !IS_ARRAY(array) || edge == NULL || !is_edge(edge) || precedes_change(edge))
                return 0;
            inputs->tensors++;
        }
        else if (IS_ARRAY(array)) {
            if (!is_held(array))
                return 0;
        }
        else {
            if (!takes_numbers || !is_number(array))
                return 0;
            is_one = 1;
            inputs->numbers++;
        }
        inputs->arrays[i] = Py_NewRef(array);
        inputs->edges[i] = Py_NewRef(edge);
        inputs->is_number[i] = (char)is_one;
        inputs->is_tensor[i] = (char)is_tensor;
        inputs->count++;
    }
    return 1;
}

static inline void
let_go(Inputs *inputs)
{
    for (Py_ssize_t i = 0; i < inputs->count; i++) {
        Py_DECREF(inputs->arrays[i]);
        Py_DECREF(inputs->edges[i]);
    }
}

static inline int
is_out_of_the_ordinary(PyObject *result)  /* and whether the interpreter has to look at it */
{
    if (result != NULL || PyErr_Occurred() == NULL || !PyErr_ExceptionMatches(broken))
        return 0;
    PyErr_Clear();
    return 1;
}

#endif
