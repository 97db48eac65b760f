import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function HomePage(): ReactNode {
  return <PageHead title="HomePage" />;
}
