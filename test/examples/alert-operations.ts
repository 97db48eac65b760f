/** The operations of the areas alert.*, on core/alert. */
import { z } from 'zod';
import { deriveAlertState } from '../../core/alert/state.ts';
import { alertSettings } from '../../core/feature/record.ts';

export function stateOfAlert(given: unknown) {
  const { settings, value } = z.object({ settings: alertSettings, value: z.coerce.string() }).parse(given);
  return { state: deriveAlertState(settings, value) };
}
