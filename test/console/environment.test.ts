import { QueryClient } from '@tanstack/react-query';
import { expect } from 'chai';
import { hashInEnvironment, setEnvironment } from '../../console/client/environment.ts';

describe('answers that the console caches', () => {
  afterEach(() => setEnvironment(null));

  it('are of one environment; the session is of all', () => {
    const queries = new QueryClient({ defaultOptions: { queries: { queryKeyHashFn: hashInEnvironment } } });
    const [customers, session] = [['/customers', { limit: 20 }], ['/auth/session']];
    setEnvironment('env_production');
    queries.setQueryData(customers, 'of production');
    queries.setQueryData(session, 'of all');
    setEnvironment('env_development');
    expect(queries.getQueryData(customers)).to.equal(undefined);
    expect(queries.getQueryData(session)).to.equal('of all');
    queries.setQueryData(customers, 'of development');
    setEnvironment('env_production');
    expect(queries.getQueryData(customers)).to.equal('of production');
    queries.clear();
  });
});
