import { notAllowed } from '../../core/foundation/error.ts';
import type { ExportProviderSettings, Provider } from '../provider.ts';
import { createDirectoryDestination, readBelow } from './export-destination.ts';

export const directory: Provider = {
  export_destination: {
    is_shared: true,
    secrets: null,
    create: ({ settings }) => createDirectoryDestination(getExportDirectory(settings)),
    openFile: async (settings, key) => readBelow(getExportDirectory(settings), key),
  },
};

function getExportDirectory({ EXPORT_DIRECTORY }: ExportProviderSettings): string {
  if (EXPORT_DIRECTORY === undefined)
    throw notAllowed('this service has no directory for exports any more (EXPORT_DIRECTORY)');
  return EXPORT_DIRECTORY;
}
