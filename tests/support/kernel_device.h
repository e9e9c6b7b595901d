/* A device of a data sheet, for tests of kernels. */
#ifndef KILTER_TESTS_SUPPORT_KERNEL_DEVICE_H
#define KILTER_TESTS_SUPPORT_KERNEL_DEVICE_H

#include "data/data.h"
#include "sim/sim.h"
#include "tests/test.h"

static inline DeviceType kernel_type_of(const char *name)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Sheets) sheets = sheets_load(&error);
    assert_no_error(error);
    const DeviceSheet *sheet = sheets_device(sheets, name, &error);
    assert_no_error(error);
    return device_sheet_type(sheet);
}

static inline KernelDevice *kernel_device_of(const char *name)
{
    g_autoptr(GError) error = NULL;
    DeviceType type = kernel_type_of(name);
    KernelDevice *device = kernel_device_new(&type, &error);
    assert_no_error(error);
    g_free(type.name);
    g_free(type.source);
    return device;
}

#endif
