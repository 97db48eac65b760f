/** Properties of the tabs of the settings and of their sheets. */
import type { SettingsSearch } from './routes.ts';

export type OpenSheet = (search?: Pick<SettingsSearch, 'sheet' | 'id'>) => void;
export type TabProps = { openSheet: OpenSheet };
export type SheetProps = { sheet: 'new' | 'open' | 'copy'; id: string | undefined; onClose: () => void };
