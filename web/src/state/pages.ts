/** Lists that come page by page; pure but for the requests. */

interface Page {
  next?: string;
}

export interface ReadPages<P> {
  pages: P[];
  /** Whether there are more than were read. */
  isCut: boolean;
}

/** Reads one page after the other, at most so many. */
export async function readPages<P extends Page>(
  read: (cursor: string | undefined) => Promise<P>,
  most: number,
): Promise<ReadPages<P>> {
  const pages: P[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(cursor);
    pages.push(page);
    cursor = page.next;
  } while (cursor !== undefined && pages.length < most);
  return { pages, isCut: cursor !== undefined };
}
