import type { Provider } from '../provider.ts';
import { Sandbox } from './payments.ts';

export const sandbox: Provider = {
  payments: { moves_money: false, create: ({ simulated_charges }) => new Sandbox(simulated_charges) },
};
