/* Classes of equal devices: the rows of the linear program have one entry per class. */
#include "balance/rows.h"
#include "data/base/free.h"

typedef struct {
    const ClusterView *view;
    const DeviceKinds *kinds;
} Order;

static int compare_kinds(const void *a, const void *b, void *data)
{
    const Order *order = data;
    const uint32_t *first = order->kinds->first;
    return device_compare(&order->view->device[first[*(const uint32_t *)a]],
                          &order->view->device[first[*(const uint32_t *)b]]);
}

/* The kinds of devices, fastest first. */
BalanceClasses *balance_classes(const ClusterView *view)
{
    const uint32_t n = view->n_devices;
    g_auto(DeviceKinds) kinds = {0};
    device_kinds(view, UINT32_MAX, &kinds);
    g_autofree uint32_t *order = g_new(uint32_t, kinds.n);
    g_autofree uint32_t *rank = g_new(uint32_t, kinds.n);
    for (uint32_t k = 0; k < kinds.n; k++)
        order[k] = k;
    Order by = {view, &kinds};
    g_qsort_with_data(order, (int)kinds.n, sizeof *order, compare_kinds, &by);
    BalanceClasses *classes = g_new0(BalanceClasses, 1);
    classes->n = kinds.n;
    classes->n_devices = n;
    classes->of_device = g_new(uint32_t, n);
    classes->device = g_new(uint32_t, n);
    classes->count = g_new0(uint32_t, n);
    for (uint32_t k = 0; k < kinds.n; k++) {
        rank[order[k]] = k;
        classes->device[k] = kinds.first[order[k]];
        classes->count[k] = kinds.count[order[k]];
    }
    for (uint32_t j = 0; j < n; j++)
        classes->of_device[j] = rank[kinds.of[j]];
    return classes;
}

FREE_DEFINE(balance_classes_free, BalanceClasses, classes,
            free_each(classes->of_device, classes->device, classes->count));
