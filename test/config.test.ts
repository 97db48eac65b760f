import { homedir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { readConfig } from '../config.ts';

describe('settings', () => {
  it('that are misspelt are refused by name, and what is meant is said', () => {
    const cases = {
      LOG_PARTITION: 'LOG_PARTITIONS',
      KAFKA_BROKER: 'KAFKA_BROKERS',
      DATA_DIRS: 'DATA_DIR',
      log_levl: 'LOG_LEVEL',
    };
    for (const [given, meant] of Object.entries(cases))
      expect(() => readConfig({ [given]: '12' }), given).to.throw(
        `configuration: ${given}: is no setting; ${meant} is`,
      );
  });

  it('of others are none of ours, also where they look alike', () => {
    const others = { PATH: '/bin', HOSTNAME: 'a', KAFKA_HEAP_OPTS: '-Xmx1G', LOG_DIR: '/tmp', NODE_ENV: 'test' };
    expect(readConfig(others)).to.deep.equal(readConfig({}));
    expect(readConfig({ DATABASE_URL: 'postgres://a/b', DATABASE_URI: 'x' }).DATABASE_URL).to.equal('postgres://a/b');
  });

  it('that name a path below the home directory', () => {
    expect(readConfig({ DATA_DIR: '~/farthing' }).DATA_DIR).to.equal(join(homedir(), 'farthing'));
    expect(readConfig({ DATA_DIR: '/srv/~x' }).DATA_DIR).to.equal('/srv/~x');
  });
});
