"""Keys of a config.json: older names, and those that never change memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ALIASES: Mapping[str, str] = {
    "n_embd": "hidden_size",
    "n_embed": "hidden_size",
    "d_model": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_layers": "num_hidden_layers",
    "num_layers": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_heads": "num_attention_heads",
    "num_kv_heads": "num_key_value_heads",
    "n_inner": "intermediate_size",
    "ffn_dim": "intermediate_size",
    "ffn_hidden_size": "intermediate_size",
    "n_positions": "max_position_embeddings",
    "use_qkv_bias": "qkv_bias",
    "num_experts_per_token": "num_experts_per_tok",
    "moe_num_experts": "num_experts",
    "moe_top_k": "num_experts_per_tok",
    "moe_topk": "num_experts_per_tok",
    "moe_k": "num_experts_per_tok",
    "num_shared_expert": "n_shared_experts",
    "num_shared_experts": "n_shared_experts",
    "moe_num_shared_experts": "n_shared_experts",
    "moe_layer_start_index": "first_k_dense_replace",
    "attention_head_dim": "head_dim",
}
"""Names of GPT-2, OPT, Falcon, ERNIE, Hunyuan and others, and today's name for the same size."""

_WITHOUT_INFLUENCE = """
    activation_dropout activation_function attention_dropout attn_pdrop embd_pdrop resid_pdrop
    attn_logit_softcapping final_logit_softcapping query_pre_attn_scalar attention_multiplier
    embedding_multiplier residual_multiplier logits_scaling logit_scale swiglu_limit
    aux_loss_alpha router_aux_loss_coef router_jitter_noise input_jitter_noise output_router_logits
    seq_aux scoring_func topk_method topk_group n_group norm_topk_prob routed_scaling_factor
    router_z_loss_coef expert_dropout moe_layer_freq ep_size experts_per_token
    auto_map bos_token_id eos_token_id pad_token_id sep_token_id unk_token_id decoder_start_token_id
    boi_token_index eoi_token_index image_token_id image_token_index video_token_id
    vision_token_id vision_start_token_id vision_end_token_id
    dropout layerdrop hidden_dropout hidden_dropout_prob attention_probs_dropout_prob
    hidden_act hidden_activation initializer_range init_std initial_context_length
    layer_norm_eps layer_norm_epsilon layernorm_epsilon norm_epsilon norm_eps rms_norm_eps
    model_type architectures architecture name source license
    pretraining_tp torch_dtype dtype transformers_version use_cache _name_or_path
    rope_theta rope_scaling rope_local_base_freq partial_rotary_factor rotary_dim rotary_pct
    rotary_emb_base rope_interleave rope_parameters original_max_position_embeddings
    max_position_embeddings max_sequence_length n_ctx no_rope_layers no_rope_layer_interval
    attn_temperature_tuning attn_scale floor_scale for_llm_compressor use_qk_norm
    cache_implementation num_logits_to_keep return_dict scale_attn_weights
    scale_attn_by_inverse_layer_idx reorder_and_upcast_attn summary_type summary_use_proj
    summary_activation summary_first_dropout summary_proj_to_labels task_specific_params
    clip_qkv alibi bias_dropout_fusion apply_residual_connection_post_layernorm
    sliding_window sliding_window_pattern max_window_layers use_sliding_window
    intermediate_size moe_intermediate_size new_decoder_architecture parallel_attn multi_query
    num_nextn_predict_layers mtp_num_hidden_layers
    head_dim_note total_params_published total_params_computed
    num_experts_per_tok vocab_size_per_layer_input chat_template use_parallel_residual
    is_encoder_decoder attn_implementation layer_switch order_of_interleaved_layers prefix
    mlp_type norm_type
    mamba_ssm_cache_dtype mamba_hidden_act use_mamba_kernels use_mambapy use_falcon_mambapy
    mamba_chunk_size chunk_size residual_in_fp32 rescale_prenorm_residual mlp_hidden_act
    time_step_min time_step_max time_step_limit time_step_floor time_step_rank time_step_scale
    time_step_init_scheme moe_shared_expert_overlap mixer_rms_eps rms_norm expand
    attn_rotary_emb mamba_proj_bias normalization_function position_embedding_type router_dtype
    fused_add_norm pad_vocab_size_multiple d_inner dt_rank norm_before_gate
    mtp_hybrid_override_pattern mtp_layers_block_type
    force_image_size dynamic_image_size max_dynamic_patch min_dynamic_patch use_thumbnail ps_version
    select_layer template projection_dim image_seq_length multimodal_projector_bias
    vision_feature_layer vision_feature_select_strategy projector_hidden_act
    qk_norm_type use_routing_bias post_norm mtp_transformer_layers num_mtp_modules use_mtp
    moe_capacity moe_gate moe_layer_interval moe_layer_end_index moe_norm_min moe_use_aux_free
    max_seq_len emb_pdrop learned_pos_emb logit_scale_factor embedding_fraction
    key_multiplier lm_head_multiplier mlp_multipliers ssm_multipliers ssm_in_multiplier
    ssm_out_multiplier attention_in_multiplier attention_out_multiplier mamba_norm_before_gate
"""

NEUTRAL_KEYS = frozenset(_WITHOUT_INFLUENCE.split())
"""Read elsewhere or without influence on parameters, cache and activations."""

PER_LAYER_KEYS = (
    "intermediate_size",
    "moe_intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "num_experts",
    "num_experts_per_tok",
    "moe_layer_freq",
)
"""Sizes that some configs list layer by layer, which the formulas do not cover unless alike."""
LISTED_KEYS = ("moe_topk", "num_shared_expert")
ALL_ATTEND = ("attn_type_list",)
"""Kinds of layers by number, where 1 is plain attention (MiniMax)."""
MOST_LISTED = 1000


def even(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Sizes that are listed for each layer and alike in all of them, as one size."""
    names = (*PER_LAYER_KEYS, *LISTED_KEYS, *ALL_ATTEND)
    values = {key: document[key] for key in names if is_listed(document.get(key))}
    alike = {key: value[0] for key, value in values.items() if len(set(value)) == 1}
    plain = {key for key in ALL_ATTEND if alike.pop(key, None) == 1}
    return {**{key: document[key] for key in document if key not in plain}, **alike}


def is_listed(value: object) -> bool:
    return (
        isinstance(value, list | tuple)
        and 0 < len(value) <= MOST_LISTED
        and all(isinstance(item, int) for item in value)
    )
