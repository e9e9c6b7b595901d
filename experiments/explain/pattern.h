/* Names of the patterns that ops with weights follow (private to experiments; see explain.h). */
#pragma once

#include "data/program/program.h"

#define PATTERN_DATA       "data parallel"
#define PATTERN_REPLICATED "replicated"

/* The forms in which a program runs each op and holds each tensor. */
typedef struct {
    const Graph *graph;
    const Instr **compute; /* [op]: its computation */
    Form *rest;            /* [tensor]: as loaded */
    Form *made;            /* [tensor]: as loaded or computed */
    Form *moment;          /* [parameter]: of its optimizer state at rest */
    /* [tensor]: bit f is set if forward or backward ops read it in form f */
    uint32_t *used;
    uint32_t *held; /* [tensor]: bit f is set if it is held in form f at some time */
    /* [tensor]: replicas divide the states of a parameter, or add up the parts of a gradient */
    bool *divided;
} PatternForms;

/* The program must have passed program_check and outlive the result. */
PatternForms *pattern_forms_new(const Program *program, const Graph *graph);
AUTOPTR(pattern_forms_free, PatternForms)

/* The input of a forward op that is its weight; false if it has none. */
bool pattern_weight(const Graph *graph, OpId id, uint32_t *weight);

/* "column parallel", "data parallel with ZeRO-3". Caller frees. */
char *pattern_name(const PatternForms *forms, OpId id, uint32_t weight);
