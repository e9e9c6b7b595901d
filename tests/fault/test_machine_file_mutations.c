/* The property of tests/fuzz/fuzz_machine_file.c on files with random damage (fixed seeds): it aborts where it
 * is broken. */
#include "tests/support/damage.h"
#include "tests/test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifndef MUTANTS
#define MUTANTS 6000
#endif
enum { DAMAGES = 4 };

static const char *const WHOLE[] = {
    "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\">\n"
    "<pci busid=\"0000:0e:00.0\" class=\"0x020700\"><nic><net name=\"mlx5_0\" dev=\"0\" "
    "speed=\"400000\" port=\"1\"/></nic></pci>\n"
    "<pci busid=\"0000:0f:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2324\" "
    "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"0\" sm=\"90\" "
    "rank=\"0\">\n"
    "<nvlink target=\"0000:04:00.0\" count=\"2\" tclass=\"0x068000\"/></gpu></pci>\n"
    "<pci busid=\"0000:34:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2324\">"
    "<gpu dev=\"1\" sm=\"90\"><nvlink target=\"0000:0f:00.0\" count=\"2\" "
    "tclass=\"0x030200\"/></gpu></pci></cpu></system>\n",
    "<system version=\"2\"><cpu numaid=\"0\"><pci busid=\"0:1\" class=\"0x120000\" "
    "vendor=\"0x1002\" device=\"0x74a1\"><gpu dev=\"0\" sm=\"304\" gcn=\"gfx942\">"
    "<xgmi target=\"0:2\" count=\"1\" tclass=\"0x120000\"/></gpu></pci><pci "
    "busid=\"0:2\" "
    "class=\"0x120000\" link_speed=\"\" link_width=\"0\"/></cpu></system>",
    "$ nvidia-smi topo -m\nGPU 0: NVIDIA H200 (UUID: GPU-1)\n"
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
    "GPU0\t X \tNV18\tNV18\tPIX\t0-31\t0\nGPU1\tNV18\t X \tNV18\tSYS\t0-31\t0\n"
    "GPU2\tNV18\tNV18\t X \tSYS\t0-31\t0\nNIC0\tPIX\tSYS\tSYS\t X \n\nLegend:\n\n  X    "
    "= Self\n",
};

static const char *const PIECE[] = {"<",
                                    ">",
                                    "/>",
                                    "\"",
                                    "&amp;",
                                    "<!DOCTYPE a [<!ENTITY b \"c\">]>",
                                    "&b;",
                                    "<pci>",
                                    "</pci>",
                                    "<gpu/>",
                                    "<net/>",
                                    "count=\"1000\"",
                                    "sm=\"",
                                    "<graphs>",
                                    "GPU0",
                                    "GPU",
                                    "NV",
                                    "NV12",
                                    "NIC0",
                                    " X ",
                                    "\x1b[4m",
                                    "\n",
                                    "\t",
                                    "-1",
                                    "1e400",
                                    "PIX",
                                    "</system>",
                                    "<cpu>",
                                    "0000:0f:00.0",
                                    "99999999999"};

static void test_mutants(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    for (uint32_t i = 0; i < MUTANTS; i++) {
        g_autoptr(GString) text = g_string_new(WHOLE[i % G_N_ELEMENTS(WHOLE)]);
        for (gint32 d = g_rand_int_range(rand, 0, DAMAGES + 1); d > 0; d--)
            damage_text(text, rand, PIECE, G_N_ELEMENTS(PIECE));
        LLVMFuzzerTestOneInput((const uint8_t *)text->str, text->len);
    }
}

int main(void)
{
    g_unsetenv("KILTER_PATH");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mutants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
