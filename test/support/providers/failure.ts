import { expect } from 'chai';
import { ProviderError } from '../../../integrations/provider-error.ts';

/** Returns the error of a call, which must be a `ProviderError`. */
export async function catchFailure(run: () => Promise<unknown>): Promise<ProviderError> {
  try {
    await run();
  } catch (error) {
    expect(error, String(error)).to.be.instanceOf(ProviderError);
    return error as ProviderError;
  }
  throw new Error('it did not fail');
}
