
import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
from torch.utils.checkpoint import checkpoint


class Again(torch.nn.Module):
    """A layer whose activations are computed again in the backward."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, value):
        return checkpoint(self.layer, value, use_reentrant=False)


class Replicas:
    """The trained parameters of a rank's stages in one buffer, their gradients in another; gradients are
    summed over the replicas. ZERO: each replica updates its part. For optimizers that treat each
    number alone, such as AdamW; 16-bit parameters have a float32 copy."""

    def __init__(self, modules, optimizer, group, share):
        trained = [p for m in modules for p in m.parameters() if p.requires_grad]
        total = sum(p.numel() for p in trained)
        part = -(-total // dist.get_world_size(group))
        like = {"dtype": trained[0].dtype, "device": trained[0].device}
        self.group, self.share = group, share
        self.values = torch.zeros(part * dist.get_world_size(group), **like)
        self.gradients = torch.zeros_like(self.values)
        at = 0
        for p in trained:
            value = self.values[at : at + p.numel()].view_as(p)
            value.copy_(p.data)
            p.data = value
            p.grad = self.gradients[at : at + p.numel()].view_as(p)
            at += p.numel()
        first = part * dist.get_rank(group)
        self.own = self.values[first : first + part] if ZERO else self.values
        self.sums = torch.empty_like(self.own) if ZERO else self.gradients
        self.updated = self.own.float()
        self.optimizer = optimizer([self.updated])

    def step(self, loss_scale=1.0):
        self.gradients.mul_(self.share / loss_scale)
        if ZERO:
            dist.reduce_scatter_tensor(self.sums, self.gradients, group=self.group)
        else:
            dist.all_reduce(self.sums, group=self.group)
        self.updated.grad = self.sums.to(self.updated.dtype)
        self.optimizer.step()
        self.own.copy_(self.updated)
        if ZERO:
            dist.all_gather_into_tensor(self.values, self.own, group=self.group)
        self.gradients.zero_()


def build(layers, loss, optimizer, device):
    """The schedule and the parameters of this rank, after dist.init_process_group. layers: the model's
    modules, the embedding first and the head last, each from one tensor to one; loss: of the head's
    output and the target, a mean over samples; optimizer: from a list of parameters."""
    replicas, n_stages = len(BATCH), len(FIRST) - 1
    # the ranks of a replica are one pipeline; those of a place in it have the same layers
    chain = [dist.new_group(range(r, replicas * PIPELINE, replicas)) for r in range(replicas)]
    same = [dist.new_group(range(p * replicas, (p + 1) * replicas)) for p in range(PIPELINE)]
    place, replica = divmod(dist.get_rank(), replicas)
    stages, modules = [], []
    for s in range(place, n_stages, PIPELINE):
        part = [Again(layers[k]) if k in AGAIN else layers[k] for k in range(FIRST[s], FIRST[s + 1])]
        modules.append(torch.nn.Sequential(*part).to(device))
        stages.append(PipelineStage(modules[-1], s, n_stages, device, group=chain[replica]))
    schedule = _PipelineScheduleRuntime(stages, MICROBATCHES, loss_fn=loss)
    schedule._load_csv(STEPS)
    return schedule, Replicas(modules, optimizer, same[place], BATCH[replica] / sum(BATCH))


def step(schedule, parameters, samples, target, loss_scale=1.0):
    """An iteration on this replica's samples, MICROBATCHES * BATCH[replica] of them. loss_scale: by what
    the loss is multiplied, against gradients that are too small for fp16."""
    place = dist.get_rank() // len(BATCH)
    given = (samples,) if place == 0 else ()
    schedule.step(*given, target=target if place == PIPELINE - 1 else None)
    parameters.step(loss_scale)
