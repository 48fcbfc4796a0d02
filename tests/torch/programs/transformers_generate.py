# needs: transformers
# module: transformers.cache_utils
# without: torch.cuda.default_stream(key_states.device).wait_stream(self.prefetch_stream)
"""A small randomly initialised GPT-2 generates tokens, with its cache on the device and offloaded to the host."""

from transformers import GPT2Config, GPT2LMHeadModel

import torch


def tokens(device, **options):
    torch.manual_seed(0)
    config = GPT2Config(n_layer=3, n_head=2, n_embd=32, vocab_size=64, n_positions=64, bos_token_id=0, eos_token_id=63)
    model = GPT2LMHeadModel(config).eval().to(device)
    prompt = torch.tensor([[1, 5, 9, 2]], device=device)
    settings = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 63, **options}
    with torch.no_grad():
        return model.generate(prompt, attention_mask=torch.ones_like(prompt), **settings).tolist()


expected = tokens("cpu")
assert tokens("cuda") == expected
assert tokens("cuda", cache_implementation="offloaded") == expected
