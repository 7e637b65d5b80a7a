// Variables that steer programs, and names of credentials that resemble them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isLoaderVariable } from '../../src/masking/secret-names.ts';

const STEERING =
  'PATH HOME SHELL IFS ENV BASH_ENV LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES NODE_OPTIONS NODE_PATH PYTHONPATH PYTHONSTARTUP PYTHON_GIL PERL5LIB PERL5OPT RUBYOPT RUBYLIB JAVA_TOOL_OPTIONS _JAVA_OPTIONS GIT_SSH_COMMAND GIT_EXEC_PATH GIT_ASKPASS GIT_CONFIG_COUNT EDITOR PAGER npm_config_node_options NPM_CONFIG_SCRIPT_SHELL LEASEHOLD_TOKEN PS4 PROMPT_COMMAND DOTNET_STARTUP_HOOKS OPENSSL_CONF GLIBC_TUNABLES LESSOPEN KUBECONFIG SSH_ASKPASS';
const CREDENTIALS =
  'PASSWORD PGPASSWORD DATABASE_URL NPM_TOKEN NODE_AUTH_TOKEN GIT_PASSWORD GIT_TOKEN npm_config__auth NPM_CONFIG__AUTHTOKEN SSH_PRIVATE_KEY JAVA_KEYSTORE_PASSWORD GITHUB_TOKEN AWS_SECRET_ACCESS_KEY PATH_TOKEN HOMEBREW_GITHUB_API_TOKEN RUBYGEMS_API_KEY';

test('one table distinguishes variables that steer programs from credentials', () => {
  assert.deepEqual(
    STEERING.split(' ').filter((name) => !isLoaderVariable(name)),
    [],
  );
  assert.deepEqual(CREDENTIALS.split(' ').filter(isLoaderVariable), []);
});
