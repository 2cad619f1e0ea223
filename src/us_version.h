
/*
 * The version of the module, the command and the packages.
 */


#ifndef _US_VERSION_H_INCLUDED_
#define _US_VERSION_H_INCLUDED_


#define US_VERSION  "1.0.0"


#endif /* _US_VERSION_H_INCLUDED_ */
