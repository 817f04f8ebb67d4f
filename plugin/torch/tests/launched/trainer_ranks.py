"""transformers' Trainer trains a BERT by ranks, with half of the joint batch each."""

import sys

from launched_case import PLUGIN, answer, used

sys.path.append(str(PLUGIN / "examples/libraries"))
import fine_tune_bert

# transformers 5.23 multiplies this model's loss by the number of ranks otherwise, on the CPU, too.
got = fine_tune_bert.train("ocl", 8, batch=8, average_tokens_across_devices=False)
trainer = got["trainer"]
answer(
    sys.argv[1],
    trainer.args.process_index,
    losses=got["losses"],
    accuracy=float(got["accuracy"]),
    device=str(trainer.args.device),
    mode=trainer.args.parallel_mode.value,
    model=type(trainer.model_wrapped).__name__,
    parameters={k: v.detach().cpu() for k, v in trainer.model.named_parameters()},
    **used(),
)
