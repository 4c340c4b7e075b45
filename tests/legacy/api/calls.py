"""What old code asks of a trainer, its workers, episodes and batches, and what it gets.

`play` asks all of it of a trainer and describes the answers as plain data: types, shapes, keys and
exceptions, no values. It runs on Python 3.7 with an old Ray, and on ours.
"""

import inspect
import numbers
import os
import re
import tempfile
from collections.abc import Mapping

import numpy as np

CONFIG = {
    "env": "CartPole-v1",
    "num_workers": 0,
    "train_batch_size": 200,
    "sgd_minibatch_size": 50,
    "rollout_fragment_length": 100,
    "num_sgd_iter": 1,
    "seed": 3,
}

#: Object → calls of it, as old code has them. `obs` is an observation of CartPole.
CALLS = {
    "trainer": """
        trainer.train()
        trainer.train()['info']
        trainer.train()['config']
        trainer.train()['hist_stats']
        trainer.train()['sampler_perf']
        trainer.train()['timers']
        trainer.compute_action(obs)
        trainer.compute_action([0, 0, 0, 0])
        trainer.compute_action([0.0, 0.0, 0.0, 0.0])
        trainer.compute_action(np.zeros(4, np.float32))
        trainer.compute_action(np.zeros(4, np.int64))
        trainer.compute_action(obs, explore=False)
        trainer.compute_action(obs, full_fetch=True)
        trainer.compute_action(obs, policy_id='default_policy')
        trainer.compute_action(obs, prev_action=0, prev_reward=0.0)
        trainer.compute_action(np.zeros(3))
        trainer.compute_action(obs, policy_id='nobody')
        trainer.compute_actions({0: obs, 1: obs})
        trainer.compute_actions({0: obs}, full_fetch=True)
        trainer.compute_actions({'a': obs}, explore=False)
        trainer.compute_single_action(obs)
        trainer.compute_single_action(obs, full_fetch=True)
        trainer.compute_single_action(input_dict={'obs': obs})
        trainer.get_policy()
        trainer.get_policy('default_policy')
        trainer.get_policy('nobody')
        trainer.get_weights()
        trainer.get_weights(['default_policy'])
        trainer.get_weights('default_policy')
        trainer.set_weights(trainer.get_weights())
        trainer.get_config()
        trainer.get_config()['lr']
        trainer.config['train_batch_size']
        trainer.config['multiagent']
        trainer.config['model']
        trainer.config['nothing']
        trainer.logdir
        trainer.iteration
        trainer._iteration
        trainer.training_iteration
        trainer.collect_metrics()
        trainer.evaluate()
        trainer.save()
        trainer.save(folder)
        trainer.restore(trainer.save())
        trainer.save_to_object()
        trainer.restore_from_object(trainer.save_to_object())
        trainer.save_checkpoint(folder)
        trainer.export_policy_model(folder)
        trainer.export_policy_checkpoint(folder)
        trainer.export_model(['checkpoint'], folder)
        trainer.workers.local_worker()
        trainer.evaluation_workers
        trainer.optimizer
        trainer.env_creator({})
        trainer.get_default_config()
        trainer.resource_help(trainer.config)
        trainer.default_resource_request(trainer.config)
        trainer.log_result({'training_iteration': 1})
        trainer.get_state()
        trainer.set_state(trainer.get_state())
        trainer.__getstate__()
        trainer.with_updates
        trainer.merge_trainer_configs(trainer.config, {'lr': 0.1})
        trainer.validate_config(trainer.config)
        trainer.try_recover_from_step_attempt()
        trainer.import_model('nothing')
        trainer.add_policy('more', type(trainer.get_policy()))
        trainer.remove_policy('more')
        trainer.nothing
        repr(trainer)
        str(trainer)
        bool(trainer)
        'train' in dir(trainer)
        'workers' in dir(trainer)
        hasattr(trainer, 'nothing')
        isinstance(trainer.config, dict)
        trainer.step()
        trainer.setup
        trainer.trial_id
        trainer.trial_name
        trainer.trial_resources
        trainer.get_auto_filled_metrics()
        trainer.is_actor()
        trainer.get_current_ip()
        trainer.should_checkpoint if False else None
        """,
    "workers": """
        workers.local_worker()
        workers.remote_workers()
        workers.foreach_worker(lambda w: w.worker_index)
        workers.foreach_worker(lambda w: w.get_weights())
        workers.foreach_worker_with_index(lambda w, i: i)
        workers.foreach_worker_with_id(lambda w, i: i)
        workers.foreach_policy(lambda p, i: i)
        workers.foreach_policy(lambda p, i, **k: p)
        workers.foreach_trainable_policy(lambda p, i: i)
        workers.foreach_policy_to_train(lambda p, i: i)
        workers.foreach_env(lambda e: 1)
        workers.foreach_env(lambda e: e.action_space.n)
        workers.foreach_env_with_context(lambda e, c: c.worker_index)
        workers.foreach_env_with_context(lambda e, c: dict(c))
        workers.trainable_policies()
        workers.is_policy_to_train('default_policy')
        workers.is_policy_to_train('default_policy', None)
        workers.num_remote_workers()
        workers.num_healthy_workers()
        workers.sync_weights()
        workers.sync_weights(policies=['default_policy'])
        workers.add_workers(0)
        workers.reset([])
        workers.remove_failed_workers()
        workers.recreate_failed_workers()
        workers.nothing
        repr(workers)
        'foreach_worker' in dir(workers)
        hasattr(workers, 'nothing')
        """,
    "worker": """
        worker.sample()
        worker.sample().count
        worker.sample()['obs']
        worker.sample()['actions']
        worker.sample()['rewards']
        worker.sample()['dones']
        worker.sample()['new_obs']
        worker.sample()['infos']
        worker.sample()['advantages']
        worker.sample()['value_targets']
        worker.sample()['action_prob']
        worker.sample()['action_logp']
        worker.sample()['action_dist_inputs']
        worker.sample()['vf_preds']
        worker.sample()['eps_id']
        worker.sample()['unroll_id']
        worker.sample()['agent_index']
        worker.sample()['t']
        sorted(worker.sample())
        sorted(worker.sample().keys())
        worker.sample_with_count()
        worker.get_metrics()
        [worker.sample(), worker.get_metrics()][1]
        [worker.sample(), worker.get_metrics()][1][0].episode_length
        [worker.sample(), worker.get_metrics()][1][0].episode_reward
        [worker.sample(), worker.get_metrics()][1][0].agent_rewards
        [worker.sample(), worker.get_metrics()][1][0].custom_metrics
        [worker.sample(), worker.get_metrics()][1][0].perf_stats
        [worker.sample(), worker.get_metrics()][1][0].hist_data
        [worker.sample(), worker.get_metrics()][1][0]._asdict()
        worker.learn_on_batch(worker.sample())
        worker.sample_and_learn(100, 1, 50, [])
        worker.compute_gradients(worker.sample())
        worker.compute_gradients(worker.sample())[0]
        worker.compute_gradients(worker.sample())[1]
        worker.apply_gradients(worker.compute_gradients(worker.sample())[0])
        worker.get_weights()
        worker.get_weights(['default_policy'])
        worker.set_weights(worker.get_weights())
        worker.set_weights(worker.get_weights(), {'timestep': 3})
        worker.get_global_vars()
        worker.set_global_vars({'timestep': 3})
        worker.set_global_vars({'timestep': 3}, ['default_policy'])
        worker.get_policy()
        worker.get_policy('default_policy')
        worker.get_policy('nobody')
        worker.policy_map['default_policy']
        worker.policy_map['nobody']
        worker.policy_map.keys()
        list(worker.policy_map)
        list(worker.policy_map.items())[0]
        len(worker.policy_map)
        worker.policy_map.get('default_policy')
        'default_policy' in worker.policy_map
        worker.for_policy(lambda p: 1)
        worker.for_policy(lambda p, **k: k, x=1)
        worker.for_policy(lambda p: 1, 'default_policy')
        worker.foreach_policy(lambda p, i: i)
        worker.foreach_policy(lambda p, i, **k: k, x=1)
        worker.foreach_trainable_policy(lambda p, i: i)
        worker.foreach_policy_to_train(lambda p, i: i)
        worker.foreach_env(lambda e: 1)
        worker.foreach_env(lambda e: e.action_space)
        worker.foreach_env_with_context(lambda e, c: c.worker_index)
        worker.foreach_env_with_context(lambda e, c: c.vector_index)
        worker.apply(lambda w: w.worker_index)
        worker.apply(lambda w, x: x, 2)
        worker.filters
        worker.filters['default_policy']
        worker.get_filters()
        worker.get_filters(flush_after=True)
        worker.sync_filters(worker.get_filters())
        worker.preprocessors
        worker.preprocessors['default_policy']
        worker.env
        worker.env.reset()
        worker.env.observation_space
        worker.env.action_space
        [worker.env.reset(), worker.env.step(0)][1]
        worker.async_env
        worker.base_env
        worker.env_context
        worker.env_context.worker_index
        worker.policy_config['lr']
        worker.policy_config['model']
        worker.policy_mapping_fn
        worker.policies_to_train
        worker.get_policies_to_train()
        worker.is_policy_to_train('default_policy', None)
        worker.set_policies_to_train(['default_policy'])
        worker.set_is_policy_to_train(['default_policy'])
        worker.set_policy_mapping_fn(lambda *a, **k: 'default_policy')
        worker.worker_index
        worker.num_workers
        worker.rollout_fragment_length
        worker.batch_mode
        worker.global_vars
        worker.last_batch
        worker.sampler
        worker.input_reader
        worker.input_reader.next()
        worker.output_writer
        worker.creation_args()
        worker.get_host()
        worker.get_node_ip()
        worker.find_free_port()
        worker.save()
        worker.restore(worker.save())
        worker.export_policy_model(folder)
        worker.export_policy_checkpoint(folder)
        worker.observation_filter
        worker.callbacks
        worker.seed
        worker.multiagent
        worker.compress_observations
        worker.preprocessing_enabled
        worker.reward_estimators
        worker.lock() if False else None
        worker.nothing
        repr(worker)
        'sample' in dir(worker)
        hasattr(worker, 'nothing')
        """,
    "policy_map": """
        policy_map['default_policy']
        policy_map['nobody']
        policy_map.get('nobody')
        policy_map.get('default_policy')
        list(policy_map)
        list(policy_map.keys())
        list(policy_map.values())
        list(policy_map.items())
        len(policy_map)
        'default_policy' in policy_map
        'nobody' in policy_map
        bool(policy_map)
        policy_map.update({})
        policy_map == {}
        isinstance(policy_map, dict)
        {**policy_map}
        repr(policy_map)
        """,
    "base_env": """
        base_env.get_unwrapped()
        base_env.get_sub_environments()
        base_env.get_sub_environments(as_dict=True)
        base_env.get_unwrapped()[0].action_space
        base_env.num_envs
        base_env.envs
        base_env.observation_space
        base_env.action_space
        base_env.get_agent_ids()
        base_env.try_reset
        base_env.send_actions
        base_env.poll
        base_env.stop
        base_env.to_base_env()
        base_env.try_render(0)
        base_env.last({}) if False else None
        base_env.action_space_sample()
        base_env.observation_space_sample()
        base_env.action_space_contains(base_env.action_space_sample())
        base_env.observation_space_contains(base_env.observation_space_sample())
        base_env.nothing
        hasattr(base_env, 'nothing')
        """,
    "episode": """
        episode.episode_id
        episode.length
        episode.total_reward
        episode.agent_rewards
        episode.user_data
        episode.custom_metrics
        episode.hist_data
        episode.media
        episode.worker
        episode.env_id
        episode.get_agents()
        episode.policy_for()
        episode.policy_for('agent0')
        episode.last_observation_for()
        episode.last_observation_for('agent0')
        episode.last_raw_obs_for()
        episode.last_info_for()
        episode.last_action_for()
        episode.prev_action_for()
        episode.last_reward_for()
        episode.prev_reward_for()
        episode.last_done_for()
        episode.rnn_state_for()
        episode.last_pi_info_for()
        episode.last_extra_action_outs_for()
        episode.batch_builder
        episode.policy_map
        episode.policy_mapping_fn
        episode.new_batch_builder
        episode.add_extra_batch
        episode.soft_reset
        episode.is_faulty
        episode.started
        episode.nothing
        hasattr(episode, 'nothing')
        """,
    "sample_batch": """
        sample_batch.count
        len(sample_batch)
        sample_batch['obs']
        sample_batch['actions']
        sample_batch['nothing']
        sample_batch.get('nothing')
        sample_batch.keys()
        list(sample_batch.items())[0][0]
        sample_batch.rows()
        next(sample_batch.rows())
        sample_batch.columns(['obs', 'actions'])
        sample_batch.copy()
        sample_batch.slice(0, 10)
        sample_batch.slice(0, 10).count
        sample_batch[0:10]
        sorted(sample_batch.split_by_episode(), key=lambda b: -b.count)
        max(sample_batch.split_by_episode(), key=lambda b: b.count)
        sample_batch.shuffle()
        sample_batch.concat(sample_batch.copy())
        type(sample_batch).concat_samples([sample_batch, sample_batch])
        sample_batch.timeslices(20)
        sample_batch.timeslices(20)[0]
        sample_batch.as_multi_agent()
        sample_batch.agent_steps()
        sample_batch.env_steps()
        sample_batch.size_bytes()
        sample_batch.compress()
        sample_batch.decompress_if_needed()
        sample_batch.is_single_trajectory()
        sample_batch.is_terminated_or_truncated()
        sample_batch.set_get_interceptor(None)
        sample_batch.set_training(True)
        sample_batch.right_zero_pad(10)
        sample_batch.to_device
        sample_batch.zero_padded
        sample_batch.is_training
        'obs' in sample_batch
        isinstance(sample_batch, dict)
        sample_batch.nothing
        """,
    "multi_agent_batch": """
        multi_agent_batch.count
        multi_agent_batch.policy_batches
        multi_agent_batch.policy_batches['default_policy']
        multi_agent_batch.agent_steps()
        multi_agent_batch.env_steps()
        multi_agent_batch.timeslices(20)
        multi_agent_batch.copy()
        multi_agent_batch.total()
        multi_agent_batch.as_multi_agent()
        multi_agent_batch.size_bytes()
        multi_agent_batch.compress()
        multi_agent_batch.decompress_if_needed()
        multi_agent_batch.wrap_as_needed(multi_agent_batch.policy_batches, 10)
        type(multi_agent_batch).concat_samples([multi_agent_batch, multi_agent_batch])
        multi_agent_batch.nothing
        """,
    "analysis": """
        analysis.best_trial
        analysis.best_config
        analysis.best_config['lr']
        analysis.best_logdir
        analysis.best_checkpoint
        analysis.best_result
        analysis.best_result_df
        analysis.best_dataframe
        analysis.trials
        analysis.results
        analysis.results_df
        analysis.stats()
        analysis.runner_data()
        analysis.dataframe()
        analysis.dataframe('episode_reward_mean')
        analysis.dataframe('episode_reward_mean', 'max')
        analysis.dataframe(metric='episode_reward_mean', mode='max')
        analysis.trial_dataframes
        analysis.fetch_trial_dataframes()
        analysis.get_all_configs()
        analysis.get_all_configs(prefix=True)
        analysis.get_best_config('episode_reward_mean')
        analysis.get_best_config(metric='episode_reward_mean', mode='max')
        analysis.get_best_logdir('episode_reward_mean')
        analysis.get_best_logdir('episode_reward_mean', mode='min')
        analysis.get_best_trial('episode_reward_mean')
        analysis.get_best_trial('episode_reward_mean', 'max')
        analysis.get_best_trial('episode_reward_mean', 'max', 'all')
        analysis.get_best_checkpoint(analysis.trials[0], 'training_iteration', 'max')
        analysis.get_best_checkpoint(analysis.trials[0], metric='training_iteration', mode='max')
        analysis.get_trial_checkpoints_paths(analysis.trials[0])
        analysis.get_trial_checkpoints_paths(analysis.trials[0], 'training_iteration')
        analysis.get_last_checkpoint()
        analysis.get_last_checkpoint(metric='training_iteration', mode='max')
        analysis.default_metric
        analysis.default_mode
        analysis.set_filetype()
        analysis.trials[0].last_result['episode_reward_mean']
        analysis.trials[0].config['lr']
        analysis.trials[0].logdir
        analysis.trials[0].checkpoint.value
        analysis.trials[0].trial_id
        analysis.trials[0].status
        analysis.trials[0].metric_analysis['training_iteration']
        analysis.trials[0].is_finished()
        analysis.nothing
        """,
}


def expressions(text):
    """The lines of one object."""
    return [line.strip() for line in text.strip().splitlines()]


def describe(value, deep=3):
    """A value as plain data, without what is different in each run."""
    if value is None or isinstance(value, (bool, str)):
        return "None" if value is None else type(value).__name__
    if isinstance(value, (np.ndarray, np.generic)):
        return _dtype(value) + _shape(value)
    if isinstance(value, numbers.Number):
        return type(value).__name__
    if type(value).__module__.startswith("torch") and hasattr(value, "dtype"):
        return "tensor " + str(value.dtype) + _shape(value)
    if type(value).__name__ in ("DataFrame", "Series"):
        return type(value).__name__
    if isinstance(value, Mapping) or type(value).__name__ == "SampleBatch":
        keys = {*value.keys(), *(["dones"] if "terminateds" in value else [])}  # it answers to it
        keys = sorted(keys, key=str)
        kind = type(value).__name__
        if "train_batch_size" in keys:
            return "a config"
        if any(str(key).endswith((".weight", "kernel")) for key in keys):
            return "weights"
        if not deep:
            return kind
        return {"is": kind, "items": {_key(k): describe(_item(value, k), deep - 1) for k in keys}}
    if hasattr(value, "_fields"):
        fields = {name: describe(getattr(value, name), deep - 1) for name in value._fields}
        return {"is": type(value).__name__, "items": fields}
    if isinstance(value, (list, tuple)) or type(value).__name__ in (
        "dict_keys",
        "dict_items",
        "KeysView",
    ):
        items = list(value)
        kind = type(value).__name__
        return {"is": kind, "first": describe(items[0], deep - 1) if items and deep else None}
    if inspect.isclass(value):
        return "class"
    if callable(value) and (inspect.isroutine(value) or type(value).__name__ == "partial"):
        return "callable"
    if inspect.isgenerator(value) or type(value).__name__ == "map":
        return "iterator"
    return "a " + type(value).__name__


def _shape(value):
    """The shape, with the number of steps, which varies, as a dot."""
    shape = tuple(value.shape)
    sizes = ["." if i == 0 and n > 8 else str(n) for i, n in enumerate(shape)]
    return "(" + ",".join(sizes) + ")"


def _dtype(value):
    """What an array holds: kinds, since sizes of numbers went with numpy and the platform."""
    return {"i": "int", "u": "int", "f": "float", "b": "bool", "O": "object"}.get(
        value.dtype.kind, value.dtype.kind
    )


def _item(value, key):
    try:
        return value[key]
    except Exception as error:
        return error


def _key(key):
    """A key as text; paths of files and ids of trials differ in each run."""
    if isinstance(key, str) and key.startswith(os.sep):
        return "PATH"
    return "TRIAL" if re.match("[0-9a-f]{5,8}(_[0-9]{5})?$", str(key)) else str(key)


def ask(expression, names):
    """What an expression gives, or how it fails."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            value = eval(expression, dict(names, folder=folder, np=np))
            return value if isinstance(value, bool) else describe(value)
        except Exception as error:
            return "raises " + type(error).__name__


def ask_all(kind, target, names, more=None):
    """The calls of an object's kind, and its public names or `more`: expressions and answers."""
    public = [kind + "." + name for name in dir(target) if not name.startswith("_")]
    calls = expressions(CALLS[kind])  # in this order: some change the object
    names_first = [one for one in sorted(public if more is None else more) if one not in calls]
    asked = [*names_first, *calls]
    return {one: ask(one, dict(names, **{kind: target})) for one in dict.fromkeys(asked)}


def play(ray, asked=None):
    """Asks everything.

    Args:
        ray: What gives the Ray's own: `trainer(config)`, `callbacks`, and `run(config)` if there
            is a Tune to run.
        asked: Object → expressions to ask besides the calls; None: all public names that it has.

    Returns:
        Object → expression → what it gave.
    """
    asked = asked or {}
    answers = {}

    class Recorder(ray.callbacks):
        def on_episode_end(self, **given):
            if "episode" not in answers:
                answers["episode"] = None  # what is asked for here may end in here again
                for kind in ("episode", "base_env"):
                    answers[kind] = ask_all(kind, given[kind], {}, asked.get(kind))

    made = ray.trainer(dict(CONFIG, callbacks=Recorder))
    made.train()
    made.stop()
    trainer = ray.trainer(dict(CONFIG))
    trainer.train()
    worker = trainer.workers.local_worker()
    batch = worker.sample()
    objects = {
        "workers": trainer.workers,
        "worker": worker,
        "policy_map": worker.policy_map,
        "sample_batch": batch,
        "trainer": trainer,
    }
    if hasattr(batch, "as_multi_agent"):
        objects["multi_agent_batch"] = batch.as_multi_agent()
    known = {"obs": np.array([0.1, 0.0, 0.0, 0.0]), "trainer": trainer}
    for kind, target in objects.items():
        answers[kind] = ask_all(kind, target, known, asked.get(kind))
    if hasattr(ray, "run"):
        answers["analysis"] = ask_all("analysis", ray.run(dict(CONFIG)), {}, asked.get("analysis"))
    return answers


#: How busy the machine is; only iterations that take long enough are told.
LOAD = ("cpu_util_percent", "ram_util_percent")


def matches(old, new):
    """Whether an answer of ours is one that code of the old Ray's can go on with.

    It is of the same kind, with all the old keys; more keys are no harm. Classes of objects have
    other names. Where the old Ray raised an error, ours raises one, or knows an answer.
    """
    if old == "None" and isinstance(new, dict):  # it was not known yet
        return True
    if isinstance(old, dict) and new == "a {}".format(old["is"]):
        return True
    if new == "TrialCheckpoint":  # a text that has what such an object has
        return old in ("str", "a TrialCheckpoint") or old.startswith("raises")
    if old in ("a set", "iterator"):
        return new == old or (isinstance(new, dict) and "first" in new)
    if old == "dict":
        return isinstance(new, dict) or new in ("dict", "LearnerInfo")
    if isinstance(old, dict) and "items" in old:
        has = isinstance(new, dict) and "items" in new
        return has and all(
            k in new["items"] and matches(v, new["items"][k])
            for k, v in old["items"].items()
            if k not in LOAD
        )
    if isinstance(old, dict):
        return isinstance(new, dict) and (
            old["first"] is None or matches(old["first"], new.get("first"))
        )
    if isinstance(new, dict) and new["is"] not in ("dict", "list", "tuple"):
        return str(old).startswith(("a ", "raises"))  # an object, which may be asked for fields
    if isinstance(old, bool) or isinstance(new, (bool, dict)) or new is None:
        return old == new or (isinstance(old, str) and old.startswith("raises"))
    if old.startswith("raises"):
        return True
    if old.startswith("a ") and new.startswith("a "):
        return True
    return old.replace("()", "") == new.replace("()", "")
