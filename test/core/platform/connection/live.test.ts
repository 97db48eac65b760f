/** docs/integrations/README.md, "Connections". */
import { expect } from 'chai';
import { checkLive } from '../../../../core/platform/connection/live.ts';

describe('credentials that move real money', () => {
  const check = (is_live: boolean | null, environment_type: 'production' | 'development') => () =>
    checkLive({ provider_type: 'stripe', is_live, environment_type });

  it('belong to production, and those for tests do not', () => {
    check(true, 'production')();
    check(false, 'development')();
    expect(check(true, 'development')).to.throw(/live credentials need an environment of type production/);
    expect(check(false, 'production')).to.throw(/test credentials are refused/);
  });

  it('pass where the provider does not tell them apart', () => {
    check(null, 'production')();
    check(null, 'development')();
  });
});
