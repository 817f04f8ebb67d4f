"""Language, speech and image-text models: transformers' classes with small configurations."""

from __future__ import annotations

import torch
from torch import nn

from .case import Case

WORDS = 97
# Sizes by the names that most configurations have.
SMALL = {
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}


def _tokens(batch: int = 2, length: int = 13) -> torch.Tensor:
    return torch.randint(3, WORDS, (batch, length))


def bert() -> Case:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        **SMALL,
        vocab_size=WORDS,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    ids = _tokens()
    mask = torch.ones_like(ids)
    mask[1, 9:] = 0
    inputs = {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}
    return Case(BertForMaskedLM(config), inputs)


def gpt2() -> Case:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=WORDS,
        n_positions=32,
        n_embd=48,
        n_layer=2,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    ids = _tokens()
    return Case(GPT2LMHeadModel(config), {"input_ids": ids, "labels": ids})


def _generate(model: nn.Module, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    ids = inputs["input_ids"]
    return model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=8,
        do_sample=False,
        use_cache=True,
        pad_token_id=0,
        eos_token_id=None,
    )


def llama() -> Case:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=64,
        intermediate_size=112,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )
    ids = _tokens()
    return Case(LlamaForCausalLM(config), {"input_ids": ids, "labels": ids}, extra=_generate)


def mixtral() -> Case:
    """Each word goes to two of four experts, whose products float64 has, too."""
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        **SMALL,
        vocab_size=WORDS,
        num_key_value_heads=2,
        num_local_experts=4,
        num_experts_per_tok=2,
        max_position_embeddings=64,
        experts_implementation="batched_mm",
    )
    ids = _tokens()
    return Case(MixtralForCausalLM(config), {"input_ids": ids, "labels": ids})


def mamba() -> Case:
    from transformers import MambaConfig, MambaForCausalLM

    config = MambaConfig(
        vocab_size=WORDS, hidden_size=32, state_size=8, num_hidden_layers=2, use_cache=False
    )
    ids = _tokens(2, 7)  # a scan of as many steps
    return Case(MambaForCausalLM(config), {"input_ids": ids, "labels": ids})


def t5() -> Case:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=WORDS,
        d_model=48,
        d_kv=12,
        d_ff=96,
        num_layers=2,
        num_heads=4,
        dropout_rate=0.0,
        decoder_start_token_id=0,
    )
    return Case(
        T5ForConditionalGeneration(config), {"input_ids": _tokens(), "labels": _tokens(2, 7)}
    )


def whisper() -> Case:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=WORDS,
        num_mel_bins=16,
        d_model=48,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=96,
        decoder_ffn_dim=96,
        max_source_positions=20,
        max_target_positions=24,
        dropout=0.0,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    inputs = {"input_features": torch.randn(2, 16, 40), "labels": _tokens(2, 7)}
    return Case(WhisperForConditionalGeneration(config), inputs)


def clip() -> Case:
    from transformers import CLIPConfig, CLIPModel

    words = {"vocab_size": WORDS, "max_position_embeddings": 16, "eos_token_id": WORDS - 1}
    text = SMALL | words
    vision = SMALL | {"image_size": 32, "patch_size": 8}
    config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=32)
    ids = _tokens(4, 9)
    ids[:, -1] = WORDS - 1
    inputs = {"input_ids": ids, "pixel_values": torch.randn(4, 3, 32, 32)}
    inputs["return_loss"] = True  # type: ignore[assignment]
    return Case(CLIPModel(config), inputs)


class Recurrent(nn.Module):
    """Words in, two layers of `kind`, the next word out; packed sequences if lengths are given."""

    def __init__(self, kind: type[nn.RNNBase], bidirectional: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 24, padding_idx=0)
        self.body = kind(24, 32, 2, batch_first=True, bidirectional=bidirectional)
        self.head = nn.Linear(64 if bidirectional else 32, WORDS)

    def forward(self, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden, state = self.body(self.embedding(ids[:, :-1]))
        last = state[0] if isinstance(state, tuple) else state
        logits = self.head(hidden)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        return {"loss": loss + last.square().mean(), "logits": logits, "last": last}


def recurrent(kind: type[nn.RNNBase], bidirectional: bool = False) -> Case:
    return Case(Recurrent(kind, bidirectional), {"ids": _tokens(3, 11)}, lambda out: out["loss"])


LANGUAGE = {
    "bert": bert,
    "gpt2": gpt2,
    "llama": llama,
    "mixtral": mixtral,
    "mamba": mamba,
    "t5": t5,
    "whisper": whisper,
    "clip": clip,
    "lstm": lambda: recurrent(nn.LSTM),
    "lstm_both_ways": lambda: recurrent(nn.LSTM, True),
    "gru": lambda: recurrent(nn.GRU),
    "rnn": lambda: recurrent(nn.RNN),
}
